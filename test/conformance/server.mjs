// The HTTP server that fetch() tests talk to. What each path does is said where it is handled.
import http from "node:http";
import zlib from "node:zlib";

const paths = {
  // What arrived, as JSON: method, path, headers, body as text.
  "/echo": async (request, response, url) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({
      method: request.method, path: url.pathname + url.search, headers: request.headers,
      body: body.toString(), size: body.length,
    }));
  },
  // The body that arrived, as it came, with its type.
  "/mirror": (request, response) => {
    if (request.headers["content-type"]) response.setHeader("content-type", request.headers["content-type"]);
    request.pipe(response);
  },
  // ?status=&to=: an answer of that status with that location.
  "/redirect": (request, response, url) => {
    request.resume();
    response.writeHead(+url.searchParams.get("status"), { location: url.searchParams.get("to") });
    response.end("moved");
  },
  // ?n=: redirects to itself n times.
  "/loop": (request, response, url) => {
    const n = +url.searchParams.get("n");
    if (n > 0) response.writeHead(302, { location: `/loop?n=${n - 1}` });
    response.end("end of the loop");
  },
  // ?status=&text=: that status and body.
  "/status": (request, response, url) => {
    request.resume();
    response.writeHead(+url.searchParams.get("status"), url.searchParams.get("reason") ?? undefined);
    response.end(url.searchParams.get("text") ?? "");
  },
  // ?coding=gzip|br|deflate: a coded body.
  "/coded": (request, response, url) => {
    const coding = url.searchParams.get("coding");
    const code = { gzip: zlib.gzipSync, br: zlib.brotliCompressSync, deflate: zlib.deflateSync }[coding];
    response.writeHead(200, { "content-encoding": coding, "content-type": "text/plain" });
    response.end(code("coded text ".repeat(100)));
  },
  // ?n=&size=&ms=: n chunks of that size, with pauses.
  "/chunks": async (request, response, url) => {
    const [n, size, ms] = ["n", "size", "ms"].map((k) => +url.searchParams.get(k));
    for (let i = 0; i < n && !response.destroyed; i++) {
      if (!response.write(Buffer.alloc(size, 97 + (i % 26)))) await new Promise((r) => {
        const go = () => (response.off("drain", go).off("close", go), r());
        response.on("drain", go).on("close", go);
      });
      if (ms) await new Promise((r) => setTimeout(r, ms));
    }
    response.end();
  },
  // Headers that repeat.
  "/headers": (request, response) => {
    response.setHeader("set-cookie", ["a=1", "b=2"]);
    response.setHeader("x-list", ["1", "2"]);
    response.end("ok");
  },
  // Never answers.
  "/never": () => {},
  // Sends half of what it promised, then cuts the connection.
  "/cut": (request, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("half");
    setTimeout(() => response.destroy(), 20);
  },
  // Server-sent events.
  "/events": (request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": comment\nid: 1\ndata: one\n\nevent: named\ndata: two\ndata: lines\n\nretry: 10\ndata: three\n\n");
    response.end();
  },
};

export async function startServer() {
  const server = http.createServer((request, response) => {
    const url = new URL(request.url, "http://x");
    const handler = paths[url.pathname];
    if (handler) return handler(request, response, url);
    response.writeHead(404).end("no such path");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
