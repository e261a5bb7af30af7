// node:tls checkServerIdentity, node:net without connections, node:url's old parser, node:http messages.
import http from "node:http";
import net from "node:net";
import tls from "node:tls";
import url from "node:url";
import { assertEquals, test } from "../harness.js";

const error = (f) => {
  try {
    f();
  } catch (e) {
    return e.code;
  }
  return undefined;
};

test("tls.checkServerIdentity: names, wildcards, addresses", () => {
  const reason = (host, cert) => tls.checkServerIdentity(host, cert)?.reason;
  assertEquals([
    reason("x.a.com", { subject: { CN: "*.a.com" } }), reason("8.8.8.8", { subjectaltname: "IP Address:8.8.8.8" }), reason("a.com", { subjectaltname: "DNS:b.com, DNS:a.com" }),
    reason("a.com", { subject: { CN: "*.com" } }), reason("a.com", { subject: { CN: "a.com" }, subjectaltname: "DNS:b.com" }), reason("8.8.8.8", { subject: { CN: "8.8.8.8" } }), reason("a.com", { subjectaltname: 'DNS:"a.com, DNS:x"' }),
  ], [
    undefined, undefined, undefined,
    "Host: a.com. is not cert's CN: *.com", "Host: a.com. is not in the cert's altnames: DNS:b.com", "IP: 8.8.8.8 is not in the cert's list: ", 'Host: a.com. is not in the cert\'s altnames: DNS:"a.com, DNS:x"',
  ]);
});

test("net: BlockList tells its rules, ports are checked", () => {
  const list = new net.BlockList();
  list.addSubnet("10.0.0.0", 8);
  assertEquals([list.check("10.1.1.1"), list.check("11.1.1.1"), list.rules], [true, false, ["Subnet: IPv4 10.0.0.0/8"]]);
  assertEquals([error(() => net.connect()), error(() => net.connect({ port: 99999 })), error(() => new net.SocketAddress({ address: "x" }))], ["ERR_MISSING_ARGS", "ERR_SOCKET_BAD_PORT", "ERR_INVALID_ADDRESS"]);
});

test("url.parse: hosts without slashes, ports that are none", () => {
  assertEquals(["host", "auth", "pathname"].map((name) => url.parse("mailto:a@b.c")[name]), ["b.c", "a", null]);
  assertEquals(["host", "port", "pathname"].map((name) => url.parse("http://a.com:abc/")[name]), ["a.com", null, "/:abc/"]);
  assertEquals([error(() => url.fileURLToPath("http://x")), error(() => url.fileURLToPath(1)), error(() => url.domainToASCII())], ["ERR_INVALID_URL_SCHEME", "ERR_INVALID_ARG_TYPE", "ERR_MISSING_ARGS"]);
});

test("http: a message can be made of anything, paths cannot name another host", () => {
  const message = new http.IncomingMessage({});
  const headers = {};
  for (const value of ["a", "b"]) for (const name of ["Set-Cookie", "X-Y", "Host"]) message._addHeaderLine(name, value, headers);
  assertEquals(headers, { "set-cookie": ["a", "b"], "x-y": "a, b", host: "a" });
  for (const path of ["//evil.test/", "http://evil.test/", "\\\\evil.test"]) assertEquals(error(() => http.request({ hostname: "a.test", path })), "ERR_INVALID_ARG_VALUE");
});
