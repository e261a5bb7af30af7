// What is in a release, as CycloneDX 1.5: the Debian packages whose libraries are in it, the npm packages whose code is in
// the program, and what is compiled in from sources of others.
//
//     node tools/package/sbom.mjs STAGE VERSION ARCH >FILE          after tools/package/stage, on the machine that built it
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const [stage, version, arch] = process.argv.slice(2);
const rows = (file) => readFileSync(file, "utf8").trim().split("\n").map((line) => line.split(" "));

const components = new Map();
function add(component) {
  components.set(component.purl, { type: "library", "bom-ref": component.purl, ...component });
}
const debian = (name, of) => `pkg:deb/debian/${name}@${encodeURIComponent(of)}?arch=${arch}&distro=debian-12`;
for (const [file, soname, binary, of, source, sourceVersion] of rows(`${stage}.libraries`)) {
  const name = binary.split(":")[0], purl = debian(name, of);
  const files = components.get(purl)?.properties ?? [];
  add({ name, version: of, purl, properties: [...files, { name: "cairn:file", value: `lib/cairn/${soname}` },
    ...(files.length ? [] : [{ name: "cairn:source", value: `${source} ${sourceVersion}` }])] });
}
for (const [, name, of, ...license] of rows(`${stage}.modules`)) {
  add({ name, version: of, purl: `pkg:npm/${name.replace("@", "%40")}@${of}`, licenses: [{ expression: license.join(" ") }] });
}
// Compiled in.
const sqlite = readFileSync("node_modules/better-sqlite3/deps/sqlite3/sqlite3.h", "utf8").match(/#define SQLITE_VERSION\s+"(.*?)"/)[1];
add({ name: "sqlite", version: sqlite, purl: `pkg:generic/sqlite@${sqlite}`, licenses: [{ expression: "blessing" }] });
try {
  const of = execFileSync("dpkg-query", ["-W", "-f", "${Version}", "node-llhttp"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  if (of) add({ name: "node-llhttp", version: of, purl: debian("node-llhttp", of), licenses: [{ expression: "MIT" }] });
} catch {
  // A library of its own, listed above.
}

const own = { type: "application", "bom-ref": "cairn", name: "cairn", version, purl: `pkg:generic/cairn@${version}?arch=${arch}`, licenses: [{ expression: "Apache-2.0" }] };
const parts = [...components.values()].sort((a, b) => (a.purl < b.purl ? -1 : 1));
const id = createHash("sha256").update(JSON.stringify([own, parts])).digest("hex");
console.log(JSON.stringify({
  bomFormat: "CycloneDX", specVersion: "1.5", version: 1,
  serialNumber: `urn:uuid:${id.slice(0, 8)}-${id.slice(8, 12)}-5${id.slice(13, 16)}-8${id.slice(17, 20)}-${id.slice(20, 32)}`,
  metadata: { timestamp: new Date(process.env.SOURCE_DATE_EPOCH * 1000).toISOString(), component: own },
  components: parts, dependencies: [{ ref: "cairn", dependsOn: parts.map(({ purl }) => purl) }],
}, null, 2));
