// HTTP by bytes: requests of every form, changed, cut and joined at random, in pieces at random, to a worker that reads what
// it is sent in every way. What comes back must be responses and nothing else.
import { brief, exchange, main, mutate } from "./lib.mjs";

const files = {
  "wrangler.json": JSON.stringify({ name: "app", main: "index.js", compatibility_date: "2026-01-01", assets: { directory: "public", binding: "ASSETS" } }),
  "public/page.html": "<!doctype html><title>page</title>", "public/data.json": "{}",
  "index.js": `export default { async fetch(request) {
    const url = new URL(request.url);
    try {
      switch (url.pathname) {
        case "/text": return new Response(await request.text());
        case "/json": return Response.json(await request.json());
        case "/form": return new Response([...await request.formData()].map(([k, v]) => k + (typeof v === "string" ? v : v.name + v.size)).join("|"));
        case "/echo": return new Response(request.body, { headers: { "x-length": request.headers.get("content-length") ?? "" } });
        case "/half": { const reader = request.body?.getReader(); const first = await reader?.read(); await reader?.cancel(); return new Response(String(first?.value?.length)); }
        case "/stream": return new Response(new ReadableStream({ start(c) { for (let i = 0; i < 5; i++) c.enqueue(new TextEncoder().encode("part " + i)); c.close(); } }));
        case "/html": return new HTMLRewriter().on("*", { element(e) { e.setAttribute("x", "y"); } }).transform(new Response(await request.text(), { headers: { "content-type": "text/html" } }));
      }
      return Response.json([request.method, request.url, [...request.headers]]);
    } catch (error) { return new Response(String(error), { status: 400 }); }
  } };`,
};
const H = "Host: a.example\r\n";
const form = '--b\r\ncontent-disposition: form-data; name="a"\r\n\r\nvalue\r\n--b\r\ncontent-disposition: form-data; name="f"; filename="n"\r\ncontent-type: text/plain\r\n\r\nbytes\r\n--b--\r\n';
const seeds = [
  `GET / HTTP/1.1\r\n${H}\r\n`, `GET /stream?a=b&c=%20 HTTP/1.1\r\n${H}Accept-Encoding: gzip, br\r\nCookie: a=b; c=d\r\n\r\n`, `HEAD /page.html HTTP/1.1\r\n${H}If-None-Match: "x", W/"y"\r\nRange: bytes=0-4\r\n\r\n`,
  `POST /text HTTP/1.1\r\n${H}Content-Length: 5\r\n\r\nhello`, `POST /echo HTTP/1.1\r\n${H}Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n`,
  `POST /json HTTP/1.1\r\n${H}Content-Type: application/json\r\nContent-Length: 17\r\n\r\n{"a":[1,2,"\u00e9"]}`, `POST /form HTTP/1.1\r\n${H}Content-Type: multipart/form-data; boundary=b\r\nContent-Length: ${form.length}\r\n\r\n${form}`,
  `POST /form HTTP/1.1\r\n${H}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 11\r\n\r\na=b&c=%zz&d`, `PUT /half HTTP/1.1\r\n${H}Expect: 100-continue\r\nContent-Length: 4\r\n\r\nbody`,
  `POST /text HTTP/1.1\r\n${H}Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbody`, `OPTIONS * HTTP/1.1\r\n${H}\r\n`, `GET http://b.example:80/x HTTP/1.1\r\n${H}\r\n`, `GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n`,
  `POST /html HTTP/1.1\r\n${H}Content-Length: 62\r\n\r\n<!doctype html><p a=b c='d' e>text<br/><!-- x --><script>"</p>"`, `GET /data.json HTTP/1.1\r\n${H}Connection: close\r\n\r\n`, `DELETE /text HTTP/1.1\r\n${H}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
].map((text) => Buffer.from(text, "latin1"));
const words = ["\r\n", "\n", "\r", "\r\n\r\n", "\0", " ", "\t", ":", "Content-Length: 0\r\n", "Content-Length: 99999999999999999999\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Host: b\r\n", "HTTP/1.1", "HTTP/9.9", "0\r\n\r\n",
  "ffffffffffffffff\r\n", "Expect: 100-continue\r\n", "Connection: close, keep-alive\r\n", "Range: bytes=-1,5-\r\n", "multipart/form-data; boundary=", "charset=utf-16", "%", "%00", "..", "/../", "//", "http://", "\xff\xfe", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "Accept-Encoding: br;q=0\r\n", "{", "[", "<", "--b"];

await main({
  name: "server http", files,
  async once(server, random) {
    let bytes = random.one(seeds);
    for (let i = random.below(3); i > 0; i--) bytes = Buffer.concat([bytes, random.one(seeds)]);
    bytes = mutate(random, bytes, words);
    const pieces = [];
    for (let at = 0; at < bytes.length;) {
      const size = random.chance(60) ? bytes.length : 1 + random.below(50);
      pieces.push(bytes.subarray(at, at + size));
      at += size;
    }
    const answer = await exchange(server.port, pieces, { silence: 40 });
    if (answer.length > 0 && !/^HTTP\/1\.1 [1-5]\d\d /.test(answer.subarray(0, 20).toString("latin1"))) throw new Error(`no response: ${brief(answer.subarray(0, 200))} to ${brief(JSON.stringify(bytes.toString("latin1")))}`);
    return answer.length === 0 ? "silence" : answer.subarray(9, 12).toString();
  },
});
