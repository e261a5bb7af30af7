// HTMLRewriter over a page of 1 MB: links rewritten, a class added, text looked at; and a page that
// passes with a selector that matches nothing. Milliseconds of wall time, the best of five.
globalThis.benchRewriter = (() => {
  let item = 0;
  let html = "<!doctype html><html><head><title>bench</title><style>a{color:red}</style></head><body>";
  while (html.length < 1 << 20) {
    item++;
    html += `<div class="item row-${item % 7}" id="i${item}"><h2>Item ${item}</h2><p>Lorem ipsum dolor sit amet, ` +
      `<b>consectetur</b> adipiscing elit &amp; more.</p><a href="/path/${item}?q=1" title="go">link</a>` +
      `<img src="/img/${item}.png" alt=""><ul><li>one</li><li>two</li></ul></div>\n`;
  }
  html += "</body></html>";
  const bytes = new TextEncoder().encode(html);
  const body = () => {
    let at = 0;
    return new ReadableStream({
      pull(c) {
        if (at >= bytes.length) return c.close();
        const piece = bytes.slice(at, at + 65536);
        at += 65536;
        return c.enqueue(piece);
      },
    });
  };
  const run = async (rewriter) => (await rewriter.transform(new Response(body())).arrayBuffer()).byteLength;
  return {
    nothing: () => run(new HTMLRewriter().on("x-none", { element() {} })),
    links: () => run(new HTMLRewriter().on("a[href]", { element(e) { e.setAttribute("href", `https://x.test${e.getAttribute("href")}`); } })),
    many: () => {
      let count = 0;
      return run(new HTMLRewriter()
        .on("div.item > h2", { element(e) { e.append("!"); } })
        .on("a[href^='/']", { element(e) { e.setAttribute("rel", "nofollow"); } })
        .on("li:nth-child(2)", { element(e) { e.setAttribute("class", "second"); } })
        .on("p", { text(t) { count += t.text.length; } }));
    },
  };
})();
if (globalThis.__native) {
  (async () => {
    for (const name of Object.keys(benchRewriter)) {
      let best = Infinity;
      let size = 0;
      for (let i = 0; i < 5; i++) {
        const begin = __native.monotonicTime();
        size = await benchRewriter[name]();
        best = Math.min(best, __native.monotonicTime() - begin);
      }
      console.log(`HTMLRewriter 1 MB, ${name}: ${best.toFixed(1)} ms (${size} bytes)`);
    }
  })().catch((e) => console.log(`${e}\n${e.stack}`));
}
