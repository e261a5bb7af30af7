// The pages of docs/reference/ that are made, each from what it describes:
//
//     node tools/reference-pages.mjs                       writes control-api.md and cairn-h.md, checks metrics.md
//     node tools/reference-pages.mjs --check               fails if one of them is out of date
//     node tools/reference-pages.mjs --commands CAIRN [--check]    the same for commands.md, from `cairn help`
//
// metrics.md is written by hand: it has every metric of the code, and no other.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { readOpenapi } from "./build-openapi.mjs";
import { readCommands } from "./package/commands.mjs";
import { page as manPage } from "./package/header.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const WIDTH = 120;

/** Prose in lines of at most WIDTH columns. */
export function fill(text, indent = "") {
  const lines = [""];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== "" && indent.length + last.length + 1 + word.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines.map((line, i) => (i === 0 ? line : indent + line)).join("\n");
}

const sentence = (text) => (/[.?!]$/.test(text) ? text : `${text}.`);
/** A text of the program, whose marks mean nothing in Markdown. */
const plain = (text) => text.split("`").map((part, i) => (i % 2 ? part : part.replace(/[<*[]/g, "\\$&"))).join("`");

/* --- commands --------------------------------------------------------------------------------- */

function commandSection(command) {
  const options = command.options.map((option) => {
    const name = `${option.letter ? `-${option.letter}, ` : ""}--${option.name}${option.value ? ` ${option.value}` : ""}`;
    const variable = option.variable ? ` Variable: \`${option.variable}\`.` : "";
    return fill(`- \`${name}\`: ${plain(sentence(option.help))}${variable}`, "  ");
  });
  const text = command.text.split("\n\n").map((part) => (/^ /m.test(part) ? `\`\`\`text\n${part}\n\`\`\`` : fill(plain(part.replace(/\n/g, " ")))));
  return [
    `## cairn ${command.name}`,
    `\`\`\`text\n${command.usage}\n\`\`\``,
    ...text,
    ...(command.examples ? [`Examples:\n\n\`\`\`text\n${command.examples}\n\`\`\``] : []),
    ...(options.length ? [`Options:\n\n${options.join("\n")}`] : []),
  ].join("\n\n");
}

function commandsPage(cairn) {
  const commands = readCommands(cairn);
  return `# Commands

This page lists every command of \`cairn\` with its options and the variables that set them. It is made from the program
itself: \`cairn help COMMAND\` prints the same text, and so does the man page \`cairn-COMMAND(1)\`.

<!-- recipes: shows usages of commands, made of \`cairn help\`; has package -->
<!-- recipe: with man cairn-serve=test -s /usr/share/man/man1/cairn-serve.1.gz -->
\`\`\`sh
cairn help              # the list of commands
cairn help serve        # one of them
man cairn-serve         # the same, if the package or \`make install\` has put the man pages in place
\`\`\`

A flag wins over its variable. A variable wins over the configuration file. Exit codes are the same for all commands
unless a section says otherwise: 0 is done, 1 is failed (a sentence on standard error says why), 2 is a wrong command
line. \`cairn check\` has 3 for a directory that it cannot check, and \`cairn serve\` has 4 for a decision that an operator
must make ([cluster.md](cluster.md#exit-codes)). A *shard* and other words of Cairn are in the
[glossary](../understand/glossary.md).

${commands.map((command) => `- [cairn ${command.name}](#cairn-${command.name}): ${plain(command.summary)}`).join("\n")}

${commands.map(commandSection).join("\n\n")}
`;
}

/* --- control API ------------------------------------------------------------------------------ */

const GROUPS = [
  ["Health, metrics and the description", /^\/(healthz|readyz|metrics|openapi\.json)$/],
  ["What the server does", /^\/api\/(tail|address|recent|cluster|memory|workers|deploy|audit|tokens.*|backup.*)$/],
  ["Objects", /^\/api\/(namespaces|objects)/],
  ["KV", /^\/api\/kv/],
  ["R2", /^\/api\/r2/],
  ["Queues", /^\/api\/queues/],
  ["D1", /^\/api\/d1/],
  ["Cron triggers", /^\/api\/crons/],
  ["Analytics Engine", /analytics/],
  ["Between nodes", /^\/node\//],
  ["The interface of wrangler", /^\/client\/v4\//],
];

function operationLine(method, address, operation) {
  const names = (operation.parameters ?? []).filter((each) => each.in === "query").map((each) => `\`${each.name}\``);
  const query = names.length ? ` Query: ${names.join(", ")}.` : "";
  return fill(`- \`${method.toUpperCase()} ${address}\`: ${plain(operation.summary)}${query}`, "  ");
}

function controlPage() {
  const { paths } = readOpenapi(root);
  const rest = new Set(Object.keys(paths));
  const sections = GROUPS.map(([title, pattern]) => {
    const mine = [...rest].filter((address) => pattern.test(address));
    for (const address of mine) rest.delete(address);
    const lines = mine.flatMap((address) =>
      Object.entries(paths[address]).filter(([method]) => method !== "parameters").map(([method, operation]) => operationLine(method, address, operation)));
    return `## ${title}\n\n${lines.join("\n")}`;
  });
  if (rest.size) throw new Error(`no group of the page has ${[...rest].join(", ")}`);
  return `# Control API

The control API is how commands, the dashboard and programs ask a running server and change its data. This page lists
every request; it is made from the description that the server itself gives at \`GET /openapi.json\`, which also has the
forms of bodies and answers.

<!-- recipes: has project -->
<!-- recipe: before served -->
\`\`\`sh
curl -fsS --unix-socket .cairn/control.sock http://cairn/api/workers
curl -fsS --unix-socket .cairn/control.sock http://cairn/openapi.json
\`\`\`

The first line works beside \`cairn dev\` or \`cairn serve\` in the same folder. Over TCP the requests go to the admin
listener and need a token: [admin.md](admin.md) says who may ask what, and how lists, keys in paths and cursors work.

An error is a JSON object \`{"error": {"code", "message"}}\` with a status code of these two groups. Of the request: 400
malformed, 401 no token, 403 denied, 404 not there, 405 wrong method, 409 in use, 413 too large, 429 too many wrong
tokens. Of the server: 503 overloaded or writes are refused, 504 too slow. A *catalog*, a *shard* and other words of
Cairn are in the [glossary](../understand/glossary.md).

${sections.join("\n\n")}
`;
}

/* --- cairn.h ---------------------------------------------------------------------------------- */

const unroff = (text) => text.replace(/\\\(dq/g, '"').replace(/\\fB|\\fI|\\fR|\\&/g, "").replace(/\\-/g, "-").replace(/\\e/g, "\\");

/** The few macros that tools/package/header.mjs writes, as Markdown. */
function markdownOf(roff) {
  const parts = [];
  let paragraph = [], code = null;
  const flush = () => {
    if (paragraph.length) parts.push(plain(fill(paragraph.join(" "))));
    paragraph = [];
  };
  for (const line of roff.split("\n")) {
    const [, macro, rest = ""] = /^\.([A-Za-z]+) ?(.*)$/.exec(line) ?? [];
    const words = unroff(rest).replace(/^"(.*)"$/, "$1");
    if (macro === "nf") {
      flush();
      code = [];
    } else if (macro === "fi") {
      parts.push(`\`\`\`c\n${code.join("\n")}\n\`\`\``);
      code = null;
    } else if (code) {
      if (macro === "B") code.push(words);
      else if (!macro) code.push(unroff(line));
    } else if (macro === "SH" || macro === "SS") {
      flush();
      const title = words.replace(/^"|"$/g, "");
      parts.push(`${macro === "SH" ? "##" : "###"} ${macro === "SH" ? title[0] + title.slice(1).toLowerCase() : title}`);
    } else if (macro === "PP" || macro === "RS" || macro === "RE" || macro === "TP") {
      flush();
    } else if (macro === "B" || macro === "I" || macro === "BR") {
      paragraph.push(words);
    } else if (!macro && line !== "") {
      paragraph.push(unroff(line));
    }
  }
  flush();
  return parts.join("\n\n");
}

function headerPage() {
  const made = manPage(readFileSync(path.join(root, "include/cairn.h"), "utf8"), "");
  const body = made.slice(made.indexOf(".SH DESCRIPTION"), made.indexOf(".SH FILES"));
  return `# cairn.h

\`cairn.h\` is the header for [objects and workers in C](../start/objects-in-c.md): its types, the functions that a class
may have, and the functions of the server that it may call. This page is made from the header and has the same text as
the man page \`cairn.h(3)\`. A *lane* and other words of Cairn are in the [glossary](../understand/glossary.md).

<!-- recipes: has package; setup apt-get install -qq ./cairn-dev_*.deb gcc libc6-dev make pkg-config >/dev/null -->
\`\`\`sh
cairn new counter --template c-object && cd counter    # a whole module with a Makefile
cc -O2 $(pkg-config --variable=moduleflags cairn) $(pkg-config --cflags cairn) -o counter.so src/counter.c
\`\`\`

${markdownOf(body)}
`;
}

/* --- metrics ---------------------------------------------------------------------------------- */

function sources(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    return entry.isDirectory() ? sources(file) : entry.name.endsWith(".c") ? [file] : [];
  });
}

/** Texts of the code that begin so and are no metrics. */
const NO_METRIC = new Set(["cairn_module_open"]);

const metricsPage = () => readFileSync(path.join(root, "docs/reference/metrics.md"), "utf8");

/** Names of metrics that the code has and the page lacks, and the reverse. */
export function compareMetrics(page = metricsPage()) {
  const inCode = new Set(sources(path.join(root, "src")).flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/"(cairn_[a-z][a-z0-9_]*)"/g)].map(([, name]) => name)).filter((name) => !NO_METRIC.has(name)));
  const onPage = new Set([...page.matchAll(/^\| `(cairn_\w+)` \|/gm)].map(([, name]) => name));
  return {
    missing: [...inCode].filter((name) => !onPage.has(name)).sort(),
    unknown: [...onPage].filter((name) => !inCode.has(name)).sort(),
  };
}

/* --- */

function write(name, text, check) {
  const file = path.join(root, "docs/reference", name);
  if (!check) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) throw new Error(`docs/reference/${name} is out of date: make docs`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const words = process.argv.slice(2), check = words.includes("--check");
  try {
    if (words[0] === "--commands") {
      write("commands.md", commandsPage(words[1]), check);
    } else {
      write("control-api.md", controlPage(), check);
      write("cairn-h.md", headerPage(), check);
      const { missing, unknown } = compareMetrics();
      if (missing.length + unknown.length)
        throw new Error(`docs/reference/metrics.md: it lacks ${missing.join(", ") || "nothing"}; the code has no ${unknown.join(", ") || "such"}`);
    }
  } catch (error) {
    console.error(`reference-pages: ${error.message}`);
    process.exit(1);
  }
}
