// HTMLRewriter: https://developers.cloudflare.com/workers/runtime-apis/html-rewriter/
import { assertEquals, assertRejects, assertThrows, test } from "../harness.js";

const rewrite = (html, selector, handlers) =>
  new HTMLRewriter().on(selector, handlers).transform(new Response(html)).text();
const element = (html, selector, handler) => rewrite(html, selector, { element: handler });

async function matches(selector, html) {
  const seen = [];
  await element(html, selector, (e) => { seen.push(e.getAttribute("n")); });
  return seen.join("");
}
const page =
  '<div n=1 class="a b" id=x><p n=2 class=A data-k="Foo bar">t</p><span n=3><p n=4 lang=en-US>u</p></span>' +
  "<p n=5>v</p><i n=6></i></div><p n=7>";
const selectors = {
  p: "2457", P: "2457", "*": "1234567", "div p": "245", "div > p": "25", "div>p": "25", "div p span": "",
  ".a.b": "1", ".A": "2", "p.a": "", "#x": "1", "div#x.a": "1", "#\\78": "1",
  "[data-k]": "2", "[DATA-K]": "2", "[data-k='Foo bar']": "2", "[data-k='foo bar']": "", "[data-k='foo bar' i]": "2",
  "[data-k=foo\\ bar i]": "2", "[data-k~=bar]": "2", "[data-k^=Foo]": "2", "[data-k$=bar]": "2", "[data-k*='o b']": "2",
  "[lang|=en]": "4", "[lang|=EN i]": "4", "[data-k='']": "", "[data-k^='']": "", 'p[n="2"][data-k]': "2",
  "p:nth-child(1)": "24", "p:nth-child(2n+1)": "245", "p:nth-child( 2n + 1 )": "245", "p:nth-child(odd)": "245",
  "p:nth-child(even)": "7", "p:nth-child(-n+2)": "247", "p:nth-child(n+3)": "5", ":first-child": "124",
  "p:first-child": "24", "p:nth-of-type(2)": "5", "p:first-of-type": "247",
  "p:not(.A)": "457", "p:not([lang])": "257", ":not(p)": "136", "div :not(p)": "36", "p:not(.A, [lang])": "57",
  "p:not(:first-child)": "57", "p, i": "24567", "*|p": "2457",
};
for (const [selector, expected] of Object.entries(selectors)) {
  test(`selector ${selector}`, async () => assertEquals(await matches(selector, page), expected));
}

const refused = {
  "": "The selector is empty.", "> p": "The selector is empty.", "div >": "Dangling combinator in selector.",
  "p + p": "Unsupported combinator `+` in selector.", "p ~ p": "Unsupported combinator `~` in selector.",
  "p:hover": "Unsupported pseudo-class or pseudo-element in selector.",
  "p::before": "Unsupported pseudo-class or pseudo-element in selector.",
  "p:not(div p)": "Unsupported pseudo-class or pseudo-element in selector.",
  "svg|p": "Selectors with explicit namespaces are not supported.",
  "a[": "Unexpected end of selector.", "[n=2]": "Unexpected token in the attribute selector.",
  "p:nth-child(2 of .a)": "Unexpected token in selector.",
};
for (const [selector, message] of Object.entries(refused)) {
  test(`selector "${selector}" is refused`, () =>
    assertThrows(TypeError, () => new HTMLRewriter().on(selector, {}), `Parser error: ${message}`));
}

test("what no handler touches passes byte for byte", async () => {
  const html = "\ufeff<!DOCTYPE  html><P CLASS=a   ID='b' disabled  /><br/>&amp; \0 <script>a<b</p></script></P ><!-- x --><b";
  assertEquals(await element(html, "p", (e) => { e.getAttribute("class"); }), html.slice(1));
});

test("attributes: reading", async () => {
  let seen;
  await element("<P CLASS=a ID='b' data-x=\"1&amp;2\" disabled>", "p", (e) => {
    seen = [e.tagName, [...e.attributes], e.getAttribute("Id"), e.hasAttribute("DISABLED"), e.getAttribute("none"), e.hasAttribute("none")];
  });
  assertEquals(seen, ["p", [["class", "a"], ["id", "b"], ["data-x", "1&amp;2"], ["disabled", ""]], "b", true, null, false]);
});

test("attributes: setting and removing rewrites the tag", async () => {
  assertEquals(await element("<P CLASS=a   ID='b' disabled  >x</P >", "p", (e) => { e.setAttribute("New", 'q"<>&'); }),
    "<P CLASS=a ID='b' disabled new=\"q&quot;<>&\">x</P >");
  assertEquals(await element("<P CLASS=a   ID='b' disabled x>y", "p", (e) => { e.setAttribute("id", "z").removeAttribute("CLASS"); }),
    '<P ID="z" disabled x>y');
  assertEquals(await element("<br/><img a='b' />", "*", (e) => { e.setAttribute("k", "v"); }),
    "<br k=\"v\" /><img a='b' k=\"v\" />");
});

test("attributes: bad names are refused", async () => {
  await assertRejects(TypeError, element("<p>", "p", (e) => { e.setAttribute("a b", "c"); }), "Parser error: ` ` character is forbidden in the attribute name");
  await assertRejects(TypeError, element("<p>", "p", (e) => { e.setAttribute("", "c"); }), "Parser error: Attribute name can't be empty.");
  await assertRejects(TypeError, element("<p>", "p", (e) => { e.tagName = "a b"; }), "Parser error: ` ` character is forbidden in the tag name");
});

const changes = [
  ["before, after, prepend, append", "<p>x</p>", (e) => { e.before("1").before("2").after("3").after("4").prepend("5").prepend("6").append("7").append("8"); }, "12<p>65x78</p>43"],
  ["html and text", "<p>x</p>", (e) => { e.before("<b>&", { html: true }).after("<b>&\"'"); }, "<b>&<p>x</p>&lt;b&gt;&amp;\"'"],
  ["replace", "<p>x<b>y</b></p>z", (e) => { e.before("B").after("A").append("app").replace("R").replace("S"); }, "BSAz"],
  ["remove", "<p>x<b>y</b></p>z", (e) => { e.before("B").after("A").prepend("P").remove(); }, "BAz"],
  ["removeAndKeepContent", "<p>x<b>y</b></p>z", (e) => { e.before("B").after("A").prepend("P").append("Q").removeAndKeepContent(); }, "BPx<b>y</b>QAz"],
  ["setInnerContent", "<p>x<b>y</b></p>z", (e) => { e.setInnerContent("<i>").prepend("pre").append("app"); }, "<p>pre&lt;i&gt;app</p>z"],
  ["setInnerContent drops what was put inside before", "<p>x</p>z", (e) => { e.prepend("pre").append("app").setInnerContent("<i>", { html: true }); }, "<p><i></p>z"],
  ["setInnerContent of nothing", "<p>x</p>z", (e) => { e.setInnerContent(""); }, "<p></p>z"],
  ["tagName", "<p a=1>x</p>", (e) => { e.tagName = "Div"; }, "<Div a=1>x</Div>"],
  ["no end tag, no end", "<p>x<div>y</div>z", (e) => { e.append("APP").after("AFT"); }, "<p>x<div>y</div>z"],
  ["a stray end tag closes nothing", "<p>one</div>two</p>three", (e) => { e.after("A"); }, "<p>one</div>two</p>Athree"],
  ["numbers and null are strings", "<p>a</p>b", (e) => { e.append(5).after(null); }, "<p>a5</p>nullb"],
];
for (const [name, html, handler, expected] of changes) {
  test(`element: ${name}`, async () => assertEquals(await element(html, "p", handler), expected));
}

test("element: void elements have no inside", async () => {
  assertEquals(await element("<br>a<img>", "br", (e) => { e.append("x").prepend("y").setInnerContent("z").after("A").before("B"); }), "B<br>Aa<img>");
});

test("element: handlers inside a removed element run, what they insert goes with it", async () => {
  let ran = 0;
  const html = await new HTMLRewriter()
    .on("div", { element(e) { e.remove(); } })
    .on("p", { element(e) { ran++; e.before("NO"); e.after("NO"); }, text(t) { t.before("T"); } })
    .transform(new Response("<div>a<p>b</p>c</div>d")).text();
  assertEquals([html, ran], ["d", 1]);
});

test("element: content from streams and responses", async () => {
  const stream = () => new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode("<i>")); c.close(); } });
  assertEquals(await element("<p>a</p>b", "p", (e) => { e.append(stream(), { html: true }); e.after(new Response("resp<")); }), "<p>a<i></p>resp&lt;b");
});

test("onEndTag", async () => {
  assertEquals(await element("<p>x</p>y", "p", (e) => { e.onEndTag((t) => { t.before("b1").before("b2").after("a1").after("a2"); }); }), "<p>xb1b2</p>a2a1y");
  assertEquals(await element("<P>x</P >y", "p", (e) => { e.onEndTag((t) => { t.name = `${t.name}q`; }); }), "<P>x</pq>y");
  assertEquals(await element("<p>x</p>y", "p", (e) => { e.onEndTag((t) => { t.remove(); }); }), "<p>xy");
  await assertRejects(TypeError, element("<br>", "br", (e) => { e.onEndTag(() => {}); }));
});

test("onEndTag: an end tag closes what is inside, innermost first", async () => {
  const seen = [];
  const html = await element("<ul><li n=1>a<li n=2>b</ul>", "li", (e) => {
    const n = e.getAttribute("n");
    e.append("!");
    e.onEndTag((t) => { seen.push(n, t.name); });
  });
  assertEquals([html, seen], ["<ul><li n=1>a<li n=2>b!</ul>", ["2", "ul", "1", "ul"]]);
});

test("text: pieces end with an empty last one", async () => {
  const seen = [];
  await rewrite("<p>hello <b>world</b></p>", "p", { text(t) { seen.push([t.text, t.lastInTextNode]); } });
  assertEquals(seen, [["hello ", false], ["", true], ["world", false], ["", true]]);
});

test("text: split over chunks, characters stay whole", async () => {
  const bytes = new TextEncoder().encode("<p>a\u20acb</p>");
  let i = 0;
  const body = new ReadableStream({ pull(c) { if (i === bytes.length) c.close(); else c.enqueue(bytes.slice(i, ++i)); } });
  let seen = "";
  const response = new HTMLRewriter().on("p", { text(t) { seen += t.text; } }).transform(new Response(body));
  assertEquals([await response.text(), seen], ["<p>a\u20acb</p>", "a\u20acb"]);
});

test("text: changes", async () => {
  assertEquals(await rewrite("<p>hello</p>", "p", {
    text(t) {
      if (t.lastInTextNode) t.after("END");
      else t.before("<").after(">").replace("R&", { html: true });
    },
  }), "<p>&lt;R&&gt;END</p>");
  assertEquals(await rewrite("<p>hello<b>x</b></p>", "p", { text(t) { t.remove(); } }), "<p><b></b></p>");
});

test("text of script, style, title and textarea is raw", async () => {
  const found = [];
  const html = "<script>if(a<b)'<p>'</script><style>a>p{}</style><title><p></title><textarea><p></textarea><xmp><p></xmp><noscript><p></noscript>";
  let text = "";
  await new HTMLRewriter()
    .on("p", { element(e) { found.push(e.tagName); } })
    .on("script", { text(t) { text += t.text; } })
    .transform(new Response(html)).text();
  assertEquals([found, text], [[], "if(a<b)'<p>'"]);
});

test("script: an end tag inside <!-- <script> does not count", async () => {
  const html = "<script><!-- <script> </script> --></script><p>";
  let text = "";
  assertEquals(await rewrite(html, "script", { text(t) { text += t.text; } }), html);
  assertEquals(text, "<!-- <script> </script> -->");
});

test("comments", async () => {
  const seen = [];
  assertEquals(await rewrite("<p><!-- a --><!--x--><!-->z", "p", { comments(c) { seen.push(c.text); c.text = "new"; c.before("b").after("a"); } }),
    "<p>b<!--new-->ab<!--new-->ab<!--new-->az");
  assertEquals(seen, [" a ", "x", ""]);
  assertEquals(await rewrite("<p><!-- a --><!-- b -->", "p", { comments(c) { if (c.text === " a ") c.remove(); else c.replace("<r>", { html: true }); } }), "<p><r>");
  await assertRejects(TypeError, rewrite("<p><!-- a -->", "p", { comments(c) { c.text = "-->"; } }), "Parser error: Comment text shouldn't contain a comment-closing sequence.");
});

test("onDocument: doctype, comments, text, end", async () => {
  const seen = [];
  const html = await new HTMLRewriter().onDocument({
    doctype(d) { seen.push(["doctype", d.name, d.publicId, d.systemId]); },
    comments(c) { seen.push(["comment", c.text]); },
    text(t) { if (t.text) seen.push(["text", t.text]); },
    end(e) { e.append("<b>").append("<i>", { html: true }); },
  }).transform(new Response('<!DOCTYPE html PUBLIC "p" "s"><!-- c --><p>x</p>tail<![CDATA[q]]><?pi?></ x>')).text();
  assertEquals(html, '<!DOCTYPE html PUBLIC "p" "s"><!-- c --><p>x</p>tail<![CDATA[q]]><?pi?></ x>&lt;b&gt;<i>');
  assertEquals(seen, [["doctype", "html", "p", "s"], ["comment", " c "], ["text", "x"], ["text", "tail"], ["comment", "[CDATA[q]]"], ["comment", "?pi?"], ["comment", " x"]]);
});

test("foreign content: CDATA is text, style is not raw", async () => {
  const found = [];
  let text = "";
  await rewrite("<svg><![CDATA[<p>]]><style><b></b></style></svg>", "*", { element(e) { found.push(e.tagName); }, text(t) { text += t.text; } });
  assertEquals([found, text], [["svg", "style", "b"], "<p>"]);
});

test("handlers run in the order of registration, with their object as this", async () => {
  const seen = [];
  const named = (name) => ({ name, element() { seen.push(this.name); } });
  await new HTMLRewriter().on("p", named("one")).on(".a", named("two")).on("*", named("three")).transform(new Response("<p class=a>")).text();
  assertEquals(seen, ["one", "two", "three"]);
});

test("handlers may be async", async () => {
  assertEquals(await element("<p>a</p>b<p>c</p>", "p", async (e) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    e.after("X");
  }), "<p>a</p>Xb<p>c</p>X");
});

test("what a handler throws is the body's error", async () => {
  await assertRejects(RangeError, element("<p>", "p", () => { throw new RangeError("mine"); }), "mine");
  await assertRejects(RangeError, element("<p>", "p", async () => { throw new RangeError("mine"); }), "mine");
});

test("tokens are valid only while their handler runs", async () => {
  let kept;
  await element("<p>a</p>", "p", (e) => { kept = e; });
  assertThrows(TypeError, () => kept.tagName, /no longer valid/);
  assertThrows(TypeError, () => kept.before("x"), /no longer valid/);
});

test("transform() keeps status and headers, and consumes the response", async () => {
  const response = new Response("<p>", { status: 201, headers: { "content-type": "text/html; charset=utf-8", "x-a": "b" } });
  const result = new HTMLRewriter().transform(response);
  assertEquals([result.status, result.headers.get("x-a"), result.headers.get("content-type")], [201, "b", "text/html; charset=utf-8"]);
  assertEquals([await result.text(), response.bodyUsed], ["<p>", true]);
  assertEquals(new HTMLRewriter().transform(new Response(null, { status: 204 })).body, null);
});

test("arguments are checked", () => {
  assertThrows(TypeError, () => new HTMLRewriter().transform("x"));
  assertThrows(TypeError, () => new HTMLRewriter().on("p"));
  assertThrows(TypeError, () => new HTMLRewriter().onDocument());
});

test("a rewriter can be used again", async () => {
  const rewriter = new HTMLRewriter().on("p", { element(e) { e.after("!"); } });
  assertEquals([await rewriter.transform(new Response("<p></p>")).text(), await rewriter.transform(new Response("<p>x</p>")).text()], ["<p></p>!", "<p>x</p>!"]);
});

test("attributes: an iterator is over with its handler", async () => {
  let kept;
  const rewritten = new HTMLRewriter().on("p", { element(e) { kept = e.attributes; } }).transform(new Response("<p a=1 b=2>x</p>"));
  await rewritten.text();
  assertThrows(TypeError, () => kept.next(), "This content token is no longer valid. Content tokens are only valid during the execution of the relevant content handler.");
});
