// The documents as a site of static files, with a search that needs no server: node tools/site/build.mjs [FOLDER]   (default: build/site)
//
// A page docs/do/backup.md becomes do/backup.html; README.md, SECURITY.md, CONTRIBUTING.md and CHANGELOG.md stand beside them, and docs/README.md is
// the index. The menu is what docs/README.md lists, in its order. Links to files of the tree that are no pages are left as text.
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { escape, inline, render } from "./markdown.mjs";

const here = path.dirname(fileURLToPath(import.meta.url)), root = path.resolve(here, "../..");
const out = path.resolve(process.argv[2] ?? path.join(root, "build/site"));
const INDEX = "docs/README.md";

function pagesIn(folder) {
  return readdirSync(path.join(root, folder)).sort().flatMap((name) => {
    const file = `${folder}/${name}`;
    return statSync(path.join(root, file)).isDirectory() ? pagesIn(file) : name.endsWith(".md") ? [file] : [];
  });
}
const pages = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", ...pagesIn("docs")];

/** Where a page is: docs/ is the top, and README.md of a folder its index. */
function addressOf(file) {
  if (file === INDEX) return "index.html";
  if (file === "README.md") return "cairn.html";
  return file.replace(/^docs\//, "").replace(/README\.md$/, "index.md").replace(/\.md$/, ".html");
}
const addresses = new Map(pages.map((file) => [file, addressOf(file)]));

/** The address, from one page, of what another part of the tree is; null: it is not in the site. */
function linkFrom(file, address) {
  if (/^\w+:/.test(address) || address.startsWith("#")) return address;
  const [target, place] = address.split("#");
  const wanted = path.normalize(path.join(path.dirname(file), target));
  const to = addresses.get(wanted) ?? addresses.get(`${wanted.replace(/\/$/, "")}/README.md`) ?? (/^docs\/images\//.test(wanted) ? wanted.slice(5) : wanted === "docs/reference" ? "index.html" : null);
  if (!to) return null;
  return `${path.relative(path.dirname(addresses.get(file)), to)}${place ? `#${place}` : ""}`;
}

const made = pages.map((file) => {
  const { html, headings, sections } = render(readFileSync(path.join(root, file), "utf8"), (address) => linkFrom(file, address) ?? "#-");
  return { file, address: addresses.get(file), title: headings[0]?.text ?? file, headings, sections, html: html.replace(/<a href="#-">([^]*?)<\/a>/g, "$1") };
});
const titles = new Map(made.map((page) => [page.file, page.title]));

// --- the menu: the parts of the index, and every page that each names

const parts = readFileSync(path.join(root, INDEX), "utf8").split(/^## /m).slice(1).map((text) => ({
  title: text.slice(0, text.indexOf("\n")),
  files: [...new Set([...text.matchAll(/\]\((?!\w+:)([^)#\s]+\.md)/g)].map(([, link]) => path.normalize(path.join("docs", link))))].filter((file) => addresses.has(file)),
}));

function menu(page) {
  return parts.map(({ title, files }) => `<details${files.includes(page.file) || page.file === INDEX ? " open" : ""}><summary>${escape(title)}</summary><ul>${files.map((file) =>
    `<li><a href="${linkFrom(page.file, path.relative(path.dirname(page.file), file))}"${file === page.file ? ' aria-current="page"' : ""}>${inline(titles.get(file))}</a></li>`).join("")}</ul></details>`).join("\n");
}

function contents({ headings }) {
  const found = headings.filter(({ level }) => level === 2);
  return found.length < 3 ? "" : `<nav class="contents" aria-label="On this page"><p>On this page</p><ul>${found.map(({ id, text }) => `<li><a href="#${escape(id)}">${escape(text)}</a></li>`).join("")}</ul></nav>`;
}

function around(page) {
  const order = parts.flatMap(({ files }) => files), at = order.indexOf(page.file);
  const link = (file, word, rel) => (file ? `<a rel="${rel}" href="${linkFrom(page.file, path.relative(path.dirname(page.file), file))}"><small>${word}</small> ${inline(titles.get(file))}</a>` : "<span></span>");
  return at < 0 ? "" : `<nav class="around" aria-label="Pages before and after">${link(order[at - 1], "Before", "prev")}${link(order[at + 1], "Next", "next")}</nav>`;
}

const shell = readFileSync(path.join(here, "page.html"), "utf8");
const files = new Map(); // name: what is in it
for (const page of made) {
  const top = path.relative(path.dirname(page.address), "") || ".";
  const parts = { title: page.file === INDEX ? "Cairn" : `${escape(page.title)} · Cairn`, top, menu: menu(page), around: around(page), content: page.html.replace("</h1>\n", `</h1>\n${contents(page)}\n`) };
  files.set(page.address, shell.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]));
}
for (const name of ["style.css", "site.js"]) files.set(name, readFileSync(path.join(here, name)));
for (const name of readdirSync(path.join(root, "docs/images"))) files.set(`images/${name}`, readFileSync(path.join(root, "docs/images", name)));
files.set("404.html", shell.replace(/\{\{(\w+)\}\}/g, (_, name) => ({ title: "Not found · Cairn", top: "", content: '<h1>There is no such page</h1><p><a href="/">All pages</a>, or search above.</p>' })[name] ?? ""));
// A script and not JSON: a page that was opened from a file may load it too.
const index = made.flatMap((page) => page.sections.map(({ id, title, text }) => [page.address + (id ? `#${id}` : ""), page.title, title, text.replace(/\s+/g, " ").trim()]));
files.set("search-index.js", `window.searchIndex = ${JSON.stringify(index).replace(/</g, "\\u003c")};\n`);

// --- only what has changed is written, each file as a whole: a server may read the folder, and others make the same site, meanwhile

for (const [name, content] of files) {
  const file = path.join(out, name), bytes = Buffer.from(content);
  if (existsSync(file) && readFileSync(file).equals(bytes)) continue;
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(`${file}.${process.pid}`, bytes);
  renameSync(`${file}.${process.pid}`, file);
}
for (const each of readdirSync(out, { recursive: true, withFileTypes: true })) {
  const file = path.join(each.parentPath ?? each.path, each.name), name = path.relative(out, file);
  if (each.isFile() && !files.has(name) && !/\.\d+$/.test(name)) rmSync(file, { force: true });
}

// --- no link of the site leads nowhere

let broken = 0;
for (const page of made) {
  for (const [, address] of page.html.matchAll(/(?:href|src)="([^"]+)"/g)) {
    if (/^\w+:/.test(address)) continue;
    const [target, place] = address.split("#");
    const content = files.get(target ? path.join(path.dirname(page.address), target) : page.address);
    const there = content !== undefined && (!place || content.includes(`id="${escape(decodeURIComponent(place))}"`));
    if (!there && ++broken) console.error(`${page.file}: ${address} leads nowhere`);
  }
}
const size = [...files.values()].reduce((sum, content) => sum + Buffer.byteLength(content), 0);
console.log(`site: ${made.length} pages, ${index.length} sections to search, ${(size / 1e6).toFixed(1)} MB in ${path.relative(process.cwd(), out) || "."}`);
process.exitCode = broken ? 1 : 0;
