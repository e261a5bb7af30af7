// The Markdown of our pages as HTML: what they use of it, and no more. Headings with anchors as in links between pages, paragraphs, lists (nested),
// tables, code (fenced or indented), links, pictures, **bold**, *italics*, `code`, <sup> and <br>. Comments of HTML are left out.

export const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");

/** What a heading becomes in an address; tools/lint-names.mjs checks links by the same rule. */
export const anchor = (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, "").replaceAll(" ", "-");

/** One line of text. `link` gets an address and gives the one to write. */
export function inline(text, link = (address) => address) {
  const kept = [];
  const keep = (html) => `\u0000${kept.push(html) - 1}\u0000`;
  const out = escape(text
    .replace(/(`+)(.+?)\1(?!`)/gs, (_, ticks, code) => keep(`<code>${escape(code.replace(/\\\|/g, "|").replace(/^ (.+) $/s, "$1"))}</code>`))
    .replace(/\\([\\`*_{}[\]()#+.!<>|-])/g, (_, mark) => keep(escape(mark)))
    .replace(/<(\/?(?:sup|sub|br|kbd))>/g, (tag) => keep(tag)))
    .replace(/!\[([^\]]*)\]\(([^)\s]+)\)/g, (_, label, address) => keep(`<img src="${link(address)}" alt="${label}" loading="lazy">`))
    .replace(/\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (_, label, address) => `${keep(`<a href="${link(address)}">`)}${label}${keep("</a>")}`)
    .replace(/(?<![\w"=/])https?:\/\/[^\s<>,;]*[^\s<>,;.:)]/g, (address) => keep(`<a href="${address}">${address}</a>`))
    .replace(/\*\*(?=\S)(.+?)(?<=\S)\*\*/gs, "<strong>$1</strong>")
    .replace(/(?<![\w*])\*(?=\S)(.+?)(?<=\S)\*(?![\w*])/gs, "<em>$1</em>");
  const put = (html) => html.replace(/\u0000(\d+)\u0000/g, (_, i) => put(kept[i]));
  return put(out);
}

const FENCE = /^(\s*)```(\w*)/, ITEM = /^(\s*)([-*+]|\d+\.) +/, ROW = /^\s*\|/;
const indentOf = (line) => /^ */.exec(line)[0].length;

/** {html, headings: [{level, text, id}], sections: [{id, title, text}]}; sections are what a search looks at. */
export function render(source, link) {
  const headings = [], sections = [{ id: "", title: "", text: "" }];
  const note = (text) => { sections.at(-1).text += ` ${text}`; };
  const line = (text) => { note(text.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*|\\]/g, "")); return inline(text, link); };
  const cells = (row) => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());

  function blocks(lines) {
    let html = "";
    for (let i = 0; i < lines.length; ) {
      const text = lines[i];
      if (!text.trim()) { i++; continue; }
      const fence = FENCE.exec(text);
      if (fence) {
        let end = i + 1;
        while (end < lines.length && !/^\s*```\s*$/.test(lines[end])) end++;
        const code = lines.slice(i + 1, end).map((each) => each.slice(Math.min(fence[1].length, indentOf(each)))).join("\n");
        note(code);
        html += `<pre${fence[2] ? ` class="of-${fence[2]}"` : ""} tabindex="0"><code>${escape(code)}</code></pre>\n`;
        i = end + 1;
        continue;
      }
      const heading = /^(#+) (.*)$/.exec(text);
      if (heading) {
        const [, marks, said] = heading, id = anchor(said), plain = said.replace(/[`*]/g, "");
        headings.push({ level: marks.length, text: plain, id });
        sections.push({ id: marks.length === 1 ? "" : id, title: plain, text: "" });
        html += `<h${marks.length} id="${escape(id)}">${inline(said, link)}${marks.length > 1 ? ` <a class="here" href="#${escape(id)}" aria-label="Link to this section">#</a>` : ""}</h${marks.length}>\n`;
        i++;
        continue;
      }
      if (ROW.test(text)) {
        let end = i;
        while (end < lines.length && ROW.test(lines[end])) end++;
        const rows = lines.slice(i, end);
        const sides = cells(rows[1] ?? "").map((cell) => (/^-+:$/.test(cell) ? ' class="right"' : ""));
        const row = (cell, tag) => `<tr>${cells(cell).map((each, at) => (each || tag === "td" ? `<${tag}${sides[at] ?? ""}>${line(each)}</${tag}>` : "<td></td>")).join("")}</tr>`;
        const head = cells(rows[0]).some(Boolean) ? `<thead>${row(rows[0], "th")}</thead>` : "";
        html += `<div class="table" tabindex="0"><table>${head}<tbody>${rows.slice(2).map((each) => row(each, "td")).join("\n")}</tbody></table></div>\n`;
        i = end;
        continue;
      }
      const item = ITEM.exec(text);
      if (item) {
        const ordered = /\d/.test(item[2]), margin = item[1].length;
        html += ordered ? "<ol>\n" : "<ul>\n";
        while (i < lines.length) {
          const one = ITEM.exec(lines[i]);
          if (!one || one[1].length !== margin || /\d/.test(one[2]) !== ordered) break;
          const inner = [lines[i].slice(one[0].length)], step = one[0].length;
          for (i++; i < lines.length; i++) {
            if (!lines[i].trim()) {
              if (indentOf(lines[i + 1] ?? "") > margin) { inner.push(""); continue; }
              break;
            }
            if (indentOf(lines[i]) <= margin) break;
            inner.push(lines[i].slice(Math.min(step, indentOf(lines[i]))));
          }
          let body = blocks(inner);
          if (/^<p>.*<\/p>\n$/s.test(body) && !body.slice(3).includes("<p>")) body = body.slice(3, -5);
          html += `<li>${body.replace(/^<p>([^]*?)<\/p>\n(?=<[uo]l>)/, "$1\n")}</li>\n`;
          while (i < lines.length && !lines[i].trim() && ITEM.test(lines[i + 1] ?? "") && indentOf(lines[i + 1]) === margin) i++;
        }
        html += ordered ? "</ol>\n" : "</ul>\n";
        continue;
      }
      if (/^ {4,}\S/.test(text)) {
        let end = i;
        while (end < lines.length && (/^ {4}/.test(lines[end]) || (!lines[end].trim() && /^ {4}/.test(lines[end + 1] ?? "")))) end++;
        const code = lines.slice(i, end).map((each) => each.slice(4)).join("\n");
        note(code);
        html += `<pre tabindex="0"><code>${escape(code)}</code></pre>\n`;
        i = end;
        continue;
      }
      let end = i;
      while (end < lines.length && lines[end].trim() && (end === i || !(FENCE.test(lines[end]) || ROW.test(lines[end]) || ITEM.test(lines[end]) || /^#+ /.test(lines[end])))) end++;
      html += `<p>${line(lines.slice(i, end).map((each) => each.trim()).join("\n"))}</p>\n`;
      i = end;
    }
    return html;
  }
  const html = blocks(source.replace(/<!--[^]*?-->\n?/g, "").split("\n"));
  return { html, headings, sections: sections.filter(({ title, text }) => title || text.trim()) };
}
