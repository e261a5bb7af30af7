// The man page cairn.h(3), made from the public header, so that it is never behind it:
//
//     node tools/package/header.mjs include/cairn.h OUT.3 VERSION
//
// The header is read as pairs: a comment and the declarations behind it. Whatever cannot be read so is an error, and so is
// a name of the header that the page would lack. The header keeps to this form:
//
//     the first two comments      the licence, and "NAME - summary." with the description in paragraphs, of which one
//                                 that begins with WORD. has a heading, and indented lines stay as they are
//     a comment                   documents what follows it, up to the next comment or empty line
//     / * ---- words ---- ... * /   begins a section of struct cairn_api, perhaps with a text of its own
//     struct cairn_class, _api    tables of functions, each documented by itself; other types are shown whole
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

/** The types whose members are functions, and how a member is written by who uses it. */
const TABLES = { cairn_class: "", cairn_api: "cairn->" };

const roff = (text) => text.replace(/\\/g, "\\e").replace(/-/g, "\\-").replace(/^([.'])/gm, "\\&$1");
/** Inside of quotes of a macro's argument. */
const quoted = (text) => roff(text).replace(/"/g, "\\(dq");

/** The lines of a comment without its marks. */
function commentLines(comment) {
  return comment.slice(2, -2).trim().split("\n").map((line) => line.replace(/^\s*\*(?: |$)/, "").trimEnd());
}

/** [{ lines, indented }]: paragraphs, and blocks of lines that are indented. */
function paragraphs(lines) {
  const parts = [];
  for (const line of lines) {
    const last = parts.at(-1), indented = /^ {4}/.test(line);
    if (line === "") {
      if (last) last.ended = true;
    } else if (last && last.indented === indented && (!last.ended || indented)) {
      if (last.ended) last.lines.push("");
      last.ended = false;
      last.lines.push(line);
    } else {
      parts.push({ lines: [line], indented, ended: false });
    }
  }
  return parts;
}

const code = (lines) => `.PP\n.RS 4\n.nf\n${lines.map((line) => roff(line)).join("\n")}\n.fi\n.RE`;

/** A text: paragraphs flow, what is indented stays, a paragraph with a heading begins a subsection. */
function text(lines, { headings = false } = {}) {
  return paragraphs(lines).map((part) => {
    if (part.indented) return code(part.lines.map((line) => line.slice(4)));
    const flowing = part.lines.join(" ");
    const heading = headings && /^([A-Z][A-Z ]+)\. (.*)$/.exec(flowing);
    if (heading) return `.SS ${heading[1][0]}${heading[1].slice(1).toLowerCase()}\n${roff(heading[2])}`;
    return `.PP\n${roff(flowing)}`;
  }).join("\n");
}

/** What the preprocessor takes away for whoever reads: attributes, and guards. */
const withoutAttributes = (source) => source.replace(/#ifdef __GNUC__\n.*?#endif\n(\s*;\n)?/gs, (all, end) => (end ? ";\n" : "")).replace(/\)\n;/g, ");");

/** [{ comment, code }] of a piece of the header, in order; both are texts, `comment` "" where there is none. */
function pairs(source) {
  const found = [];
  for (const block of source.split(/\n\s*\n(?![^/]*\*\/)/)) {
    let rest = block;
    while (rest.trim() !== "") {
      const match = /^\s*(\/\*.*?\*\/)?[ \t]*\n?(.*?)(?=\n[ \t]*\/\*|$(?![\s\S]))/s.exec(rest);
      found.push({ comment: match[1] ?? "", code: match[2].trimEnd() });
      rest = rest.slice(match[0].length);
    }
  }
  return found;
}

/** "int (*kv_put)(cairn_object *object,\n   ...);" as "int cairn->kv_put(cairn_object *object, ...);" */
function functions(source, prefix) {
  return source.split(";").map((each) => each.trim().replace(/\s+/g, " ")).filter(Boolean).map((each) => {
    const found = /^(.*?)\(\*(\w+)\)(\(.*\))$/.exec(each);
    return found ? { name: found[2], line: `${found[1]}${prefix}${found[2]}${found[3]};` } : { name: /(\w+)$/.exec(each)[1], line: `${each};` };
  });
}

const declared = (lines) => `.PP\n.nf\n${lines.map((line) => `.B "${quoted(line)}"`).join("\n")}\n.fi`;
const explained = (lines) => (lines.length ? `.RS 4\n${text(lines).replace(/^\.PP\n/, "")}\n.RE` : "");

/** The members of a table of functions. */
function table(source, prefix, names) {
  const parts = [];
  // A remark behind a member stands before it here.
  const body = source.replace(/^([ \t]*)([^\n/]*;)[ \t]*(\/\*[^\n]*\*\/)$/gm, "\n$1$3\n$1$2\n");
  for (const { comment, code: members } of pairs(body)) {
    const lines = comment ? commentLines(comment) : [];
    const section = /^---- (.*?) ----$/.exec(lines[0] ?? "");
    if (section) {
      const [head, remark] = section[1].split(": ");
      parts.push(`.SS ${head[0].toUpperCase()}${head.slice(1)}`);
      if (remark) parts.push(`.PP\n${roff(`${remark[0].toUpperCase()}${remark.slice(1)}.`)}`);
      if (lines.length > 1) parts.push(text(lines.slice(1)));
      if (members.trim()) throw new Error(`cannot read this: "${lines[0]}" has declarations right behind it`);
      continue;
    }
    const found = functions(members, prefix);
    for (const each of found) names.add(each.name);
    if (found.length) parts.push(declared(found.map((each) => each.line)), explained(lines));
    else if (lines.length) parts.push(text(lines));
  }
  return parts.filter(Boolean).join("\n");
}

/** The page; `header` is the text of the header. */
export function page(header, version) {
  const comments = [...header.matchAll(/\/\*.*?\*\//gs)];
  const [first, ...description] = commentLines(comments[1][0]);
  const title = /^(\S+) - (.*)\.$/.exec(first);
  if (!title) throw new Error(`the header's comment does not begin with "NAME - summary.": ${first}`);
  const body = header.slice(header.indexOf('extern "C" {') + 'extern "C" {\n#endif'.length, header.lastIndexOf("#ifdef __cplusplus"));
  const names = new Set(), types = [], tables = [], module = [];
  // A type with its members is one declaration, whatever comments are in it.
  const pieces = [];
  let rest = withoutAttributes(body);
  for (;;) {
    const open = /^(?:\/\*(?:[^*]|\*(?!\/))*\*\/\n)?(?:struct|enum)(?: (\w+))? \{\n(.*?)\n\};$|^(?:\/\*(?:[^*]|\*(?!\/))*\*\/\n)?enum (\w+) \{[^\n]*\};$/ms.exec(rest);
    if (!open) break;
    pieces.push(...pairs(rest.slice(0, open.index)));
    const comment = /^\/\*.*?\*\//s.exec(open[0])?.[0] ?? "";
    pieces.push({ comment, code: open[0].slice(comment.length).trim(), type: open[1] ?? open[3] ?? "", members: open[2] });
    rest = rest.slice(open.index + open[0].length);
  }
  pieces.push(...pairs(rest));

  for (const { comment, code: shown, type, members } of pieces) {
    const lines = comment ? commentLines(comment) : [];
    if (type in TABLES) {
      names.add(type);
      tables.push(`.SH ${type === "cairn_api" ? "FUNCTIONS OF THE SERVER" : "FUNCTIONS OF A CLASS"}\n.PP\n.B struct ${type}\n${text(lines)}\n${table(members, TABLES[type], names)}`);
      continue;
    }
    const macro = /^#define (\w+)(\([^)]*\))/.exec(shown);
    const block = macro ? [`${macro[1]}${macro[2]}`] : shown.split("\n");
    for (const [word] of shown.matchAll(/\b(?:cairn|CAIRN)_\w+\b/g)) names.add(word);
    (macro || /cairn_module\b|cairn_module_open|\*cairn;/.test(shown) ? module : types).push(`${text(lines)}\n${code(block)}`);
  }
  const made = `.TH CAIRN.H 3 "" "cairn ${version}" "Cairn"
.SH NAME
${roff(title[1])} \\- ${roff(title[2])}
.SH SYNOPSIS
.nf
.B #include <cairn.h>
.PP
.B cc $(pkg\\-config \\-\\-variable=moduleflags cairn) $(pkg\\-config \\-\\-cflags cairn) \\-o counter.so counter.c
.fi
.SH DESCRIPTION
${text(description, { headings: true })}
.SH TYPES
${types.join("\n")}
${tables.join("\n")}
.SH A MODULE
${module.join("\n")}
.SH FILES
.TP
.I cairn.pc
what
.BR pkg\\-config (1)
reads: the flags of the compiler, the version, and as the variable
.I moduleflags
those that make the output a module.
.SH SEE ALSO
.BR cairn (1),
.BR cairn\\-new (1),
.BR cairn\\-dev (1),
.BR cairn\\-serve (1)
`;
  check(body, made, names);
  return made;
}

/** Whether every name that the header declares is on the page. */
function check(body, made, names) {
  const bare = body.replace(/\/\*.*?\*\//gs, "");
  const wanted = new Set([
    ...[...bare.matchAll(/\(\*(\w+)\)\s*\(/g)].map(([, name]) => name).filter((name) => name !== "each"),
    ...[...bare.matchAll(/\b(?:CAIRN|cairn)_\w+/g)].map(([name]) => name),
  ]);
  wanted.delete("cairn_this_module"); // inside of a macro
  const missing = [...wanted].filter((name) => !names.has(name) || !made.includes(name));
  if (missing.length) throw new Error(`the page would lack these names of the header: ${missing.join(", ")}`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(path.resolve(process.argv[1])).href) {
  const [, , header, out, version] = process.argv;
  writeFileSync(out, page(readFileSync(header, "utf8"), version));
}
