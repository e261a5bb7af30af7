// node:http: servers behind cloudflare:node, and the client on fetch().
import { test, assert, assertEquals, assertRejects, serverUrl as address } from "../harness.js";
import { Buffer } from "node:buffer";
import http from "node:http";
import https from "node:https";
import { handleAsNodeRequest, httpServerHandler } from "cloudflare:node";

let nextPort = 9000;
/** A server on a port of its own; resolves to (path, init) => Response. */
function serve(listener) {
  const port = nextPort++;
  const server = http.createServer(listener).listen(port);
  return { server, port, call: (path, init) => handleAsNodeRequest(port, new Request(`http://example.com${path}`, init)) };
}

test("a server answers", async () => {
  const { call } = serve((request, response) => {
    response.statusCode = 201;
    response.setHeader("X-Method", request.method);
    response.end(`${request.url} ${request.headers["x-a"]}`);
  });
  const response = await call("/path?q=1", { headers: { "X-A": "b" } });
  assertEquals(response.status, 201);
  assertEquals(response.headers.get("x-method"), "GET");
  assertEquals(await response.text(), "/path?q=1 b");
});

test("the body of a request is a stream", async () => {
  const { call } = serve(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    response.writeHead(200, { "content-type": "text/plain", "set-cookie": ["a=1", "b=2"] });
    response.end(Buffer.concat(parts).toString().toUpperCase());
  });
  const response = await call("/", { method: "POST", body: "hello" });
  assertEquals(await response.text(), "HELLO");
  assertEquals(response.headers.getSetCookie(), ["a=1", "b=2"]);
});

test("a response is written piece by piece", async () => {
  const { call } = serve((request, response) => {
    response.write("one ");
    assert(response.headersSent);
    setTimeout(() => {
      response.write("two ");
      response.end("three");
    }, 5);
  });
  assertEquals(await (await call("/")).text(), "one two three");
});

test("large responses arrive whole", async () => {
  const { call } = serve(async (request, response) => {
    for (let i = 0; i < 64; i++) {
      if (!response.write(Buffer.alloc(16384, i))) await new Promise((resolve) => response.once("drain", resolve));
    }
    response.end();
  });
  const bytes = new Uint8Array(await (await call("/")).arrayBuffer());
  assertEquals([bytes.length, bytes[0], bytes.at(-1)], [64 * 16384, 0, 63]);
});

test("statuses without a body, and HEAD", async () => {
  const { call } = serve((request, response) => {
    if (request.method === "HEAD") response.setHeader("x-head", "1").end();
    else response.writeHead(204).end();
  });
  const none = await call("/");
  assertEquals([none.status, await none.text()], [204, ""]);
  const head = await call("/", { method: "HEAD" });
  assertEquals([head.status, head.headers.get("x-head"), await head.text()], [200, "1", ""]);
});

test("headers: case, lists, removal, and too late", async () => {
  const seen = {};
  const { call } = serve((request, response) => {
    response.setHeader("X-One", 1);
    response.setHeader("x-two", ["a", "b"]);
    response.setHeader("x-gone", "x");
    response.removeHeader("X-Gone");
    seen.names = response.getHeaderNames();
    seen.has = response.hasHeader("x-ONE");
    response.end("x");
    try {
      response.setHeader("late", "1");
    } catch (error) {
      seen.late = error.code;
    }
  });
  const response = await call("/");
  assertEquals(response.headers.get("x-two"), "a, b");
  assertEquals(response.headers.get("x-gone"), null);
  assertEquals(seen.names, ["x-one", "x-two"]);
  assertEquals([seen.has, seen.late], [true, "ERR_HTTP_HEADERS_SENT"]);
});

test("listen(): ports, and those that are taken", async () => {
  const { server, port } = serve(() => {});
  assert(server.listening);
  assertEquals(server.address().port, port);
  const other = http.createServer().listen(0);
  assert(other.address().port > 0);
  other.close();
  assertEquals(other.listening, false);
  await new Promise((resolve) => server.close(resolve));
  await assertRejects(Error, handleAsNodeRequest(port, new Request("http://x/")));
});

test("httpServerHandler() makes a fetch handler", async () => {
  const { port } = serve((request, response) => response.end(`from ${request.url}`));
  const { fetch } = httpServerHandler({ port });
  assertEquals(await (await fetch(new Request("http://example.com/a"), {}, {})).text(), "from /a");
});

test("a client: request() and get()", async () => {
  const body = await new Promise((resolve, reject) => {
    const request = http.request(`${address()}/echo?x=1`, { method: "POST", headers: { "X-Sent": "yes" } }, (response) => {
      assertEquals(response.statusCode, 200);
      let text = "";
      response.setEncoding("utf8").on("data", (part) => { text += part; }).on("end", () => resolve(JSON.parse(text)));
    });
    request.on("error", reject);
    request.write("a ");
    request.end("body");
  });
  assertEquals([body.method, body.path, body.body, body.headers["x-sent"]], ["POST", "/echo?x=1", "a body", "yes"]);
  const status = await new Promise((resolve) => http.get(`${address()}/status?status=404`, (response) => resolve(response.resume().statusCode)));
  assertEquals(status, 404);
});

test("node:https has the same members", () => {
  for (const name of ["request", "get", "Agent", "createServer", "Server"]) assertEquals(typeof https[name], "function", name);
  assertEquals(http.STATUS_CODES[418], "I'm a Teapot");
  assert(http.METHODS.includes("PATCH"));
});
