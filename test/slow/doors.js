// What is given texts by way of a service, a rewriter or a statement; test/slow/doors.mjs says which.
import { textOf } from "./texts.js";

const all = (make) => ({ element: (token) => make(token), text: (token) => token.text, comments: (token) => token.text });
/** A body that comes in pieces of 100 bytes. */
function pieces(text) {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new Response(new ReadableStream({ pull: (controller) => (at < bytes.length ? controller.enqueue(bytes.slice(at, (at += 100))) : controller.close()) }));
}
const SELECTORS = ["a", "a b > c", ":nth-of-type(2)", ".a.b", "[a*='aaab' i]", "a:not(.c, [d])"];
const read = (rewriter, response) => rewriter.transform(response).text();
const HTML = {
  selector: (text) => read(new HTMLRewriter().on(text, all(() => {})), new Response("<a class='a b' b=c>d</a>")),
  content: (text) => read(SELECTORS.reduce((rewriter, selector) => rewriter.on(selector, all((element) => [...element.attributes])), new HTMLRewriter()), new Response(text)),
  pieces: (text) => read(new HTMLRewriter().on("a", all(() => {})).onDocument(all(() => {})), pieces(text)),
  inserted: (text) => read(new HTMLRewriter().on("a", all((element) => {
    for (const place of ["before", "after", "prepend", "append", "replace", "setInnerContent"]) element[place](text, { html: true });
    try { element.setAttribute(text, text); } catch {}
    try { element.tagName = text; } catch {}
    return element.getAttribute(text);
  })), new Response("<a b=c>d</a>")),
  both: (text) => read(new HTMLRewriter().on(`[x*="${text.slice(0, text.length / 2).replace(/["\\]/g, "")}b" i]`, all(() => {})), new Response(`<a x="${text.replace(/"/g, "")}">`)),
};

/** Every other argument nearly is the one before it, or has its character at its end (`last`). */
async function sql({ statement, count, place, last }, text, env) {
  if (statement !== undefined) return env.D1.prepare(statement).bind(text).all();
  if (place === undefined) return env.D1.exec(text);
  return env.D1.prepare(place).bind(...Array.from({ length: count }, (_, i) => (i % 2 === 0 ? text : last ? "b".repeat(text.length / 2) + text[0] : text.slice(0, text.length / 2) + "b"))).all();
}

export default {
  async fetch(request, env) {
    const job = await request.json();
    for (const [head, unit, tail] of job.texts) {
      const text = textOf(head, unit, tail, job.length);
      try { await (job.html ? HTML[job.html](text) : sql(job.sql, text, env)); } catch {}
    }
    return Response.json(Object.keys(HTML));
  },
};
