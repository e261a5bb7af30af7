// Bytes from outside, or from a script that passes them on, never become a header line or a request of
// their own.
import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { after, before, describe, test } from "node:test";
import { raw } from "../lib/server.mjs";
import { actor } from "./lib.mjs";

const nasty = ["a\r\nset-cookie: b=1", "a\nset-cookie: b=1", "a\rset-cookie: b=1", "a\0b", "a\r\n\r\n<script>"];

describe("what a script puts into a response", () => {
  let server;
  before(async () => {
    server = await actor({
      value: '(request) => request.json().then((text) => new Response("x", { headers: { "x-value": text } }))',
      append: '(request) => request.json().then((text) => { const r = new Response("x"); r.headers.append("set-cookie", "a=" + text); return r; })',
      name: '(request) => request.json().then((text) => new Response("x", { headers: { [text]: "1" } }))',
      status: '(request) => request.json().then((text) => new Response("x", { statusText: text }))',
      redirect: '(request) => request.json().then((text) => new Response(null, { status: 302, headers: { location: "/" + text } }))',
      redirectUrl: '(request) => request.json().then((text) => Response.redirect("http://example.com/" + text))',
      metadata: `(request, env) => request.json().then(async (text) => {
        await env.BUCKET.put("k", "x", { httpMetadata: { contentType: text } });
        const headers = new Headers();
        (await env.BUCKET.get("k")).writeHttpMetadata(headers);
        return new Response("x", { headers });
      })`,
      protocol: `(request) => request.json().then((text) => {
        const [client, server] = Object.values(new WebSocketPair());
        server.accept();
        return new Response(null, { status: 101, webSocket: client, headers: { "sec-websocket-protocol": text } });
      })`,
    });
  });
  after(() => server.stop());
  for (const name of ["value", "append", "name", "status", "redirect", "redirectUrl", "metadata"])
    test(name, async () => {
      for (const text of nasty) {
        const body = JSON.stringify(text);
        const answer = await raw(server.port, `POST /${name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
        const [head] = answer.split("\r\n\r\n");
        assert.doesNotMatch(head, /^set-cookie: b/im, `${JSON.stringify(text)}: ${head}`);
        assert.doesNotMatch(head, /<script>/, `${JSON.stringify(text)}: ${head}`);
        assert.doesNotMatch(head, /[\0]|\r(?!\n)|(?<!\r)\n/, JSON.stringify(head));
        assert.equal(answer.split("HTTP/1.1 ").length, 2, "one answer");
      }
    });
  test("the protocol of a WebSocket", async () => {
    for (const text of nasty) {
      const body = JSON.stringify(text);
      const answer = await raw(server.port, `POST /protocol HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      assert.doesNotMatch(answer.split("\r\n\r\n")[0], /^set-cookie: b/im);
    }
  });
});

describe("what a script sends on", () => {
  test("names, values, methods and URLs of outgoing requests", async () => {
    const received = [];
    const origin = net.createServer((socket) => {
      socket.setEncoding("latin1").on("data", (text) => { received.push(text); socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"); });
    }).listen(0, "127.0.0.1");
    await once(origin, "listening");
    const url = `http://127.0.0.1:${origin.address().port}`;
    const server = await actor({
      value: `(request) => request.json().then((text) => fetch("${url}/", { headers: { "x-value": text } }).then((r) => r.text()))`,
      name: `(request) => request.json().then((text) => fetch("${url}/", { headers: { [text]: "1" } }).then((r) => r.text()))`,
      method: `(request) => request.json().then((text) => fetch("${url}/", { method: text }).then((r) => r.text()))`,
      url: `(request) => request.json().then((text) => fetch("${url}/" + text).then((r) => r.text()))`,
    });
    for (const name of ["value", "name", "method", "url"])
      for (const text of nasty) await server.act(name, text);
    for (const request of received) {
      assert.doesNotMatch(request, /^set-cookie: b/im);
      assert.doesNotMatch(request, /<script>/);
      assert.equal(request.split(" HTTP/1.1").length, 2, request);
    }
    assert.ok(received.length > 0, "URLs are escaped and sent");
    await server.stop();
    origin.close();
  });
});

describe("requests that could be read in two ways", () => {
  let server;
  before(async () => {
    server = await actor({
      echo: "(request) => request.text()",
      smuggled: '() => new Response("SMUGGLED")',
    });
  });
  after(() => server.stop());
  const hidden = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
  const post = (headers, body, version = "1.1") => `POST /echo HTTP/${version}\r\nHost: x\r\n${headers}\r\n\r\n${body}`;
  const cases = {
    "both lengths, TE first": post(`Transfer-Encoding: chunked\r\nContent-Length: 4`, `0\r\n\r\n${hidden}`),
    "both lengths, CL first": post(`Content-Length: ${5 + hidden.length}\r\nTransfer-Encoding: chunked`, `0\r\n\r\n${hidden}`),
    "two lengths": post(`Content-Length: 0\r\nContent-Length: ${hidden.length}`, hidden),
    "the same length twice": post("Content-Length: 0\r\nContent-Length: 0", hidden),
    "a list of lengths": post("Content-Length: 0, 0", hidden),
    "a signed length": post("Content-Length: +0", hidden),
    "a hexadecimal length": post("Content-Length: 0x0", hidden),
    "a length past 64 bits": post("Content-Length: 18446744073709551616", hidden),
    "another coding": post("Transfer-Encoding: identity", hidden),
    "chunked twice": post("Transfer-Encoding: chunked, chunked", `0\r\n\r\n${hidden}`),
    "chunked and another": post("Transfer-Encoding: gzip, chunked", `0\r\n\r\n${hidden}`),
    "chunked, not last": post("Transfer-Encoding: chunked, identity", `0\r\n\r\n${hidden}`),
    "x chunked": post("Transfer-Encoding: xchunked", `0\r\n\r\n${hidden}`),
    "a blank before the colon": post("Transfer-Encoding : chunked", `0\r\n\r\n${hidden}`),
    "a tab before the colon": post("Transfer-Encoding\t: chunked", `0\r\n\r\n${hidden}`),
    "a folded line": post("X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 0", hidden),
    "a vertical tab": post("Transfer-Encoding: \x0bchunked", `0\r\n\r\n${hidden}`),
    "a bare line feed": `POST /echo HTTP/1.1\nHost: x\nContent-Length: 0\n\n${hidden}`,
    "a bare carriage return": post("X: a\rTransfer-Encoding: chunked\r\nContent-Length: 0", hidden),
    "chunked in HTTP/1.0": post("Transfer-Encoding: chunked", `0\r\n\r\n${hidden}`, "1.0"),
    "a chunk size with a sign": post("Transfer-Encoding: chunked", `+0\r\n\r\n${hidden}`),
    "a chunk size with 0x": post("Transfer-Encoding: chunked", `0x0\r\n\r\n${hidden}`),
    "a chunk size past 64 bits": post("Transfer-Encoding: chunked", `10000000000000000\r\n\r\n${hidden}`),
    "a chunk that is longer than it says": post("Transfer-Encoding: chunked", `1\r\nabc\r\n0\r\n\r\n${hidden}`),
    "a chunk that ends in a line feed": post("Transfer-Encoding: chunked", `1\na\n0\n\n${hidden}`),
    "no Host": `POST /echo HTTP/1.1\r\nContent-Length: 0\r\n\r\n${hidden}`,
    "two Hosts": post("Host: y\r\nContent-Length: 0", hidden),
    "a space in the target": `POST /echo /x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n${hidden}`,
    "a NUL in a name": post("X\0: a\r\nContent-Length: 0", hidden),
  };
  for (const [name, text] of Object.entries(cases))
    test(name, async () => {
      const answer = await raw(server.port, text);
      // A body that goes wrong is the script's to hear of; what it answers then is the last answer.
      assert.match(answer, /^HTTP\/1\.[01] (400|413|501|505) |The request body ended early/, answer);
      assert.equal(answer.split("HTTP/1.").length, 2, "one answer");
      assert.doesNotMatch(answer, /SMUGGLED/, "nothing after it is read");
      assert.match(answer, /^connection: close/im);
    });
  test("a plain pipelined request is one", async () => {
    const answer = await raw(server.port, post("Content-Length: 0", hidden.replace("Host: x", "Host: x\r\nConnection: close")));
    assert.match(answer, /SMUGGLED/);
  });
});
