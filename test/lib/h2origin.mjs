// An HTTP/2 origin over TLS for test_client_h2.c: node h2origin.mjs CERT KEY. Prints its
// port, ends when its standard input does.
import http2 from "node:http2";
import fs from "node:fs";

const [cert, key] = process.argv.slice(2).map((path) => fs.readFileSync(path));
const server = http2.createSecureServer({ cert, key, allowHTTP1: false });
let sessions = 0;
server.on("session", () => sessions++);
server.on("stream", (stream, headers) => {
  stream.on("error", () => {}); // the client may go away at any time
  switch (headers[":path"]) {
    case "/hello":
      stream.respond({ ":status": 200, "set-cookie": ["a=1", "b=2"] });
      stream.end(`hello over h2, session ${sessions}`);
      break;
    case "/big":
      stream.respond({ ":status": 200 });
      stream.end(Buffer.alloc(8 << 20, "b"));
      break;
    case "/echo":
      stream.respond({ ":status": 200 });
      stream.pipe(stream);
      break;
    case "/count": {
      let size = 0;
      stream.on("data", (chunk) => (size += chunk.length));
      stream.on("end", () => {
        stream.respond({ ":status": 200 });
        stream.end(`${headers["content-length"] ?? "unknown"} ${size}`);
      });
      break;
    }
    case "/reset":
      stream.respond({ ":status": 200 });
      stream.write("part"); // close() would end the stream properly first
      setTimeout(() => stream.destroy(new Error("on purpose")), 20);
      break;
    default:
      stream.respond({ ":status": 404 }, { endStream: true });
  }
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit(0));
