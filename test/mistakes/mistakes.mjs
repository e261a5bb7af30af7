// Mistakes that people make in a project, each with what a good message of it holds.
//
// {name, files, request?, args?, before?, thing, remedy, place?, frame?}
//   files    over those of `plain`; null: the file is not there
//   request  path of a request that meets the mistake; none: it shows at the start
//   thing    what is wrong, by name; all of the patterns must match
//   remedy   what to do or to type
//   place    where: file and line of the project
//   frame    the line of the file itself
//   ends     nothing can be mended in a file, so the program may end
const toml = (more = "") => `name = "app"\nmain = "src/index.js"\ncompatibility_date = "2026-01-01"\n${more}`;
const handler = (body, more = "") => `${more}export default {\n  async fetch(request, env, ctx) {\n    ${body}\n  },\n};\n`;
const object = (body, config) => ({
  "wrangler.toml": toml(config ?? `[[durable_objects.bindings]]\nname = "ROOM"\nclass_name = "Room"\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Room"]\n`),
  "src/index.js": `import { DurableObject } from "cloudflare:workers";\n${body}\nexport default {\n  fetch: (request, env) => env.ROOM.get(env.ROOM.idFromName("a")).fetch(request),\n};\n`,
});

export const plain = { "wrangler.toml": toml(), "src/index.js": handler(`return new Response("hello");`) };

/** The same with a class that works. */
const mended = object(`export class Room extends DurableObject {\n  fetch() {\n    return new Response("hello");\n  }\n}`);

export const mistakes = [
  { name: "a bracket is missing", files: { "src/index.js": "export default {\n  fetch() {\n    return new Response(\"a\";\n  },\n};\n" },
    thing: [/Expected "\)"/], place: /src\/index\.js:3:27/, frame: /return new Response\("a";/ },
  { name: "TypeScript that is none", files: { "wrangler.toml": toml().replace("index.js", "index.ts"), "src/index.ts": "interface A { a: ; }\nexport default { fetch: () => new Response() };\n" },
    thing: [/Unexpected ";"/], place: /src\/index\.ts:1:17/, frame: /interface A/ },
  { name: "an imported file is not there", files: { "src/index.js": `import { a } from "./part.js";\n${handler("return new Response(a);")}` },
    thing: [/Could not resolve "\.\/part\.js"/], place: /src\/index\.js:1:18/, frame: /import \{ a \}/ },
  { name: "a package is not installed", files: { "package.json": "{}", "src/index.js": `import { Hono } from "hono";\nexport default new Hono();\n` },
    thing: [/"hono"/], remedy: /npm install hono/, place: /src\/index\.js:1:21/, frame: /import \{ Hono \}/ },
  { name: "an import that the file does not export", files: { "src/part.js": "export const one = 1;\n", "src/index.js": `import { two } from "./part.js";\n${handler("return new Response(two.length);")}` }, request: "/",
    thing: [/"two"/, /part\.js/], place: /src\/index\.js:(1|4):/, frame: /import \{ two \}|two\.length/ },
  { name: "a JSON file that is none", files: { "src/data.json": `{ "a": 1, }`, "src/index.js": `import data from "./data.json";\n${handler("return Response.json(data);")}` },
    thing: [/JSON/], place: /src\/data\.json:1:8|src\/data\.json:1:10/, frame: /"a": 1/ },
  { name: "a module of Node.js without its flag", files: { "src/index.js": `import { readFileSync } from "node:fs";\n${handler(`return new Response(readFileSync("/a"));`)}` }, request: "/",
    thing: [/node:fs/], remedy: /nodejs_compat/, place: /src\/index\.js:?1?/ },
  { name: "main is not said", files: { "wrangler.toml": `name = "app"\ncompatibility_date = "2026-01-01"\n` }, ends: true,
    thing: [/main|entry-point/], remedy: /main = "|`main`|"main"/ },
  { name: "main names a file that is not there", files: { "wrangler.toml": toml().replace("index", "main") },
    thing: [/src\/main\.js/], place: /wrangler\.toml/ },
  { name: "no configuration", files: { "wrangler.toml": null, "src/index.js": null, "readme.txt": "" }, ends: true,
    thing: [/wrangler\.(toml|json)|entry-point/], remedy: /cairn new|cairn init|wrangler\.toml|--assets|wrangler dev src/ },
  { name: "the configuration is no TOML", files: { "wrangler.toml": `name = "app\nmain = "src/index.js"\n` },
    thing: [/string|newline|control character/i], place: /wrangler\.toml:1/, frame: /name = "app/ },
  { name: "a key is misspelt", files: { "wrangler.toml": toml().replace("compatibility_date", "compatability_date") },
    thing: [/compatability_date/], remedy: /did you mean|compatibility_date/, place: /wrangler\.toml/ },
  { name: "a key has a value of the wrong kind", files: { "wrangler.toml": toml("vars = 3\n") },
    thing: [/vars/], remedy: /table|object|section/, place: /wrangler\.toml/ },
  { name: "an environment that is not there", files: {}, args: ["--env", "staging"], 
    thing: [/staging/], remedy: /\[env\.staging\]|env\.staging|Available|environments? (are|configured)|no environments/i },
  { name: "nothing is exported", files: { "src/index.js": `addEventListener2("fetch", () => {});\nfunction addEventListener2() {}\n` }, request: "/",
    thing: [/fetch|export|handler/i], remedy: /export default/ },
  { name: "it throws at the start", files: { "src/index.js": `const config = undefined;\nconst name = config.name;\n${handler("return new Response(name);")}` },
    thing: [/TypeError/, /config/], place: /src\/index\.js:2/, frame: /const name = config\.name/ },
  { name: "it fetches at the start", files: { "src/index.js": `const answer = await fetch("http://127.0.0.1:1/");\n${handler("return new Response(answer);")}` },
    thing: [/global scope|top level|outside/i], remedy: /handler/, place: /src\/index\.js:1/ },
  { name: "a handler throws", files: { "src/index.js": handler("const user = null;\n    return new Response(user.name);") }, request: "/",
    thing: [/TypeError/, /null/], place: /src\/index\.js:4/, frame: /user\.name/ },
  { name: "a handler returns nothing", files: { "src/index.js": handler(`new Response("a");`) }, request: "/",
    thing: [/Response/, /undefined|did not return|nothing/], remedy: /return/ },
  { name: "a handler returns a text", files: { "src/index.js": handler(`return "hello";`) }, request: "/",
    thing: [/Response/, /string|type/i], remedy: /new Response|Response/ },
  { name: "a promise is rejected that nobody awaits", files: { "src/index.js": handler(`later();\n    await new Promise((go) => setTimeout(go, 50));\n    return new Response("sent");`, `async function later() {\n  await null;\n  throw new Error("nobody awaits me");\n}\n`) }, request: "/",
    thing: [/nobody awaits me/], place: /src\/index\.js:3/, frame: /throw new Error/ },
  { name: "a request that never ends", files: { "src/index.js": handler(`await new Promise(() => {});\n    return new Response();`) }, request: "/",
    thing: [/never generate a response|hung|hang/i], },
  { name: "a relative address", files: { "src/index.js": handler(`return fetch("/api/users");`) }, request: "/",
    thing: [/Invalid URL|relative|cannot be parsed/i, /\/api\/users/], place: /src\/index\.js:3/, frame: /fetch\("\/api\/users"\)/ },
  { name: "a body is read twice", files: { "src/index.js": handler(`const sent = new Request("http://a/", { method: "POST", body: "{}" });\n    await sent.text();\n    return Response.json(await sent.json());`) }, request: "/",
    thing: [/body/i, /used|read|disturbed/], place: /src\/index\.js:5/, frame: /sent\.json\(\)/ },
  { name: "a binding is not configured", files: { "src/index.js": handler(`return new Response(await env.USERS.get("a"));`) }, request: "/",
    thing: [/USERS|undefined/], remedy: /kv_namespaces|wrangler\.toml/, place: /src\/index\.js:3/, frame: /env\.USERS\.get/ },
  { name: "a secret is not set", files: { "src/index.js": handler(`return new Response(env.API_KEY.trim());`) }, request: "/",
    thing: [/API_KEY|undefined/], remedy: /\.dev\.vars/, place: /src\/index\.js:3/, frame: /env\.API_KEY\.trim/ },
  { name: "a migration of D1 is not applied", files: { "wrangler.toml": toml(`[[d1_databases]]\nbinding = "DB"\ndatabase_name = "shop"\ndatabase_id = "shop"\n`),
    "migrations/0001_users.sql": "CREATE TABLE users (id INTEGER PRIMARY KEY);\n", "src/index.js": handler(`return Response.json(await env.DB.prepare("SELECT * FROM users").all());`) }, request: "/",
    thing: [/no such table: users/], remedy: /d1 migrations apply/, place: /src\/index\.js:3/, frame: /env\.DB\.prepare/ },
  { name: "SQL that is none", mended, files: object(`export class Room extends DurableObject {\n  fetch() {\n    this.ctx.storage.sql.exec("SELEC 1");\n  }\n}`), request: "/",
    thing: [/near "SELEC": syntax error/], place: /src\/index\.js:4/, frame: /SELEC 1/ },
  { name: "an object's method throws", mended, files: object(`export class Room extends DurableObject {\n  fetch() {\n    return new Response(this.missing.name);\n  }\n}`), request: "/",
    thing: [/TypeError/, /missing|undefined/], place: /src\/index\.js:4/, frame: /this\.missing\.name/ },
  { name: "a method that an object does not have", mended, files: { ...object(`export class Room extends DurableObject {\n  hello() {}\n}`), "src/index.js":
    `import { DurableObject } from "cloudflare:workers";\nexport class Room extends DurableObject {\n  hello() {}\n}\nexport default {\n  fetch: async (request, env) => new Response(await env.ROOM.get(env.ROOM.idFromName("a")).helo()),\n};\n` }, request: "/",
    thing: [/helo/], place: /src\/index\.js:6/, frame: /\.helo\(\)/ },
  { name: "an object's class is not exported", mended, files: object("class Room extends DurableObject {}"),
    thing: [/Room/, /not exported|export/], remedy: /export/, },
  { name: "an object's class has no migration", mended, files: object("export class Room extends DurableObject {\n  fetch() {\n    return new Response();\n  }\n}", `[[durable_objects.bindings]]\nname = "ROOM"\nclass_name = "Room"\n`), request: "/",
    thing: [/Room/, /migration/], remedy: /new_sqlite_classes/ },
  { name: "a script that never ends", files: { "src/index.js": handler(`let found = 0;\n    while (found < 10) found = JSON.parse("1");\n    return new Response(found);`) }, request: "/", seconds: 30,
    thing: [/limit|CPU|exceeded|held|hang/i], remedy: /cpu_ms|limits/, place: /src\/index\.js:4/, frame: /while \(found/ },
  { name: "a service that is not there", files: { "wrangler.toml": toml(`[[services]]\nbinding = "BACK"\nservice = "back"\n`), "src/index.js": handler("return env.BACK.fetch(request);") }, request: "/",
    thing: [/"?back"?/, /not (connected|found|running)|no worker|couldn't find|not part/i], remedy: /dev/ },
  { name: "a folder of assets that is not there", files: { "wrangler.toml": toml(`[assets]\ndirectory = "public"\n`) },
    thing: [/public/, /not exist|not there|no such/i], place: /wrangler\.toml|directory/ },
  { name: "a port that somebody has", files: {}, taken: true, ends: true,
    thing: [/port|in use/i], remedy: /8\d\d\d|\b\d{4,5}\b/ },
];
