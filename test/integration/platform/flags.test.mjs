// Compatibility flags of the Web APIs that are honoured on both sides: the same script, once as of today and
// once with every one of them off. What is expected was seen on workerd with the same flags.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { project, serve } from "../lib/server.mjs";
import { objects, services } from "../lib/toml.mjs";

const OFF = [
  "formdata_parser_converts_files_to_strings", "no_global_navigator", "no_urlsearchparams_delete_has_value_arg",
  "no_http_headers_getsetcookie", "response_redirect_url_original", "no_upper_case_all_http_methods", "do_not_strip_bom_in_read_all_text",
  "no_set_event_target_this", "no_expose_global_message_channel", "disable_weak_ref", "internal_stream_byob_return_undefined",
  "streams_disable_constructors", "transformstream_disable_standard_constructor", "blob_legacy_mime_type", "no_fetch_iterable_type_support",
  "no_strict_compression_checks", "streams_byob_reader_does_not_detach_buffer", "internal_writable_stream_abort_does_not_clear_queue",
  "fetch_legacy_url", "retain_authorization_on_cross_origin_redirect", "disable_fast_jsg_struct",
];

const SCRIPT = `
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";

/** The value, or the name of the error. */
const attempt = async (read) => {
  try {
    return await read();
  } catch (error) {
    return error.name;
  }
};
const gzip = async (text) =>
  new Uint8Array(await new Response(new Response(text).body.pipeThrough(new CompressionStream("gzip"))).arrayBuffer());

const cases = {
  async files() {
    const type = "multipart/form-data; boundary=b";
    const body = '--b\\r\\nContent-Disposition: form-data; name="f"; filename="x"\\r\\n\\r\\nhi\\r\\n--b--\\r\\n';
    return typeof (await new Response(body, { headers: { "content-type": type } }).formData()).get("f");
  },
  globals: () => ["navigator", "Navigator", "MessageChannel", "MessagePort", "WeakRef", "FinalizationRegistry"].map((name) => name in globalThis),
  params() {
    const params = new URLSearchParams("a=1&a=2");
    const has = params.has("a", "3");
    params.delete("a", "1");
    return [has, params.toString()];
  },
  cookies: () => typeof Headers.prototype.getSetCookie,
  location: () => Response.redirect("http://a.b").headers.get("location"),
  url: () => new Request("http://a.b").url,
  methods: () => Promise.all(["get", "patch", "PATCH"].map((method) => attempt(() => new Request("http://a", { method }).method))),
  mark: async () => (await new Response("\\ufeffx").text()).length,
  listener() {
    const target = new EventTarget();
    let self;
    target.addEventListener("x", function () { self = this; });
    target.dispatchEvent(new Event("x"));
    return self === target;
  },
  async end() {
    const { readable, writable } = new IdentityTransformStream();
    writable.close();
    const { value, done } = await readable.getReader({ mode: "byob" }).read(new Uint8Array(1));
    return [value === undefined, done];
  },
  async buffer() {
    const { readable, writable } = new IdentityTransformStream();
    const view = new Uint8Array(4);
    const read = readable.getReader({ mode: "byob" }).read(view);
    await writable.getWriter().write("ab");
    await read;
    return view.byteLength;
  },
  constructors: () => Promise.all([ReadableStream, WritableStream].map((Stream) => attempt(() => typeof new Stream()))),
  async transformer() {
    let calls = 0;
    const { readable, writable } = new TransformStream({ transform(chunk, controller) { calls++; controller.enqueue(chunk); } });
    const read = readable.getReader().read();
    await writable.getWriter().write("ab");
    return [calls, typeof (await read).value];
  },
  type: async () => (await new Response("", { headers: { "content-type": 'Text/HTML;A="b"' } }).blob()).type,
  iterables: () => attempt(() => new Response(["a", "b"]).text()),
  async trailing() {
    const packed = await gzip("hello");
    const { readable, writable } = new DecompressionStream("gzip");
    const writer = writable.getWriter();
    writer.write(new Uint8Array([...packed, 1, 2])).catch(() => {});
    writer.close().catch(() => {});
    return attempt(() => new Response(readable).text());
  },
  async abort() {
    const { writable } = new IdentityTransformStream();
    const writer = writable.getWriter();
    writer.closed.catch(() => {});
    const write = writer.write("a").then(() => "written", () => "failed");
    writer.abort("no").catch(() => {});
    return Promise.race([write, scheduler.wait(50).then(() => "waits")]);
  },
  authorization: async (env) => (await env.SELF.fetch("http://one.example/start", { headers: { authorization: "secret" } })).text(),
};

export class Redirects extends WorkerEntrypoint {
  fetch(request) {
    if (request.url.endsWith("/start")) return Response.redirect("http://two.example/end");
    return new Response(request.headers.get("authorization") ?? "none");
  }
}

export class Rows extends DurableObject {
  ends() {
    const sql = this.ctx.storage.sql;
    return [sql.exec("SELECT 1 WHERE 0").next(), sql.exec("SELECT 1 WHERE 0").raw().next()].map((end) => Object.keys(end));
  }
}
cases.rows = (env) => env.ROWS.getByName("a").ends();

export default {
  async fetch(request, env) {
    const results = {};
    for (const name of Object.keys(cases)) results[name] = await cases[name](env);
    return Response.json(results);
  },
};
`;

const servers = [];
after(() => Promise.all(servers.map((server) => server.stop())));

async function results(flags) {
  const server = await serve(project({
    "wrangler.toml": `name = "flags"
main = "index.js"
compatibility_date = "2026-08-22"
compatibility_flags = ${JSON.stringify(flags)}
${objects({ ROWS: "Rows" })}
${services({ SELF: { service: "flags", entrypoint: "Redirects" } })}`,
    "index.js": SCRIPT,
  }));
  servers.push(server);
  return (await fetch(server.url)).json();
}

test("as of today", async () => {
  assert.deepEqual(await results([]), {
    files: "object", globals: [true, true, true, true, true, true], params: [false, "a=2"], cookies: "function", location: "http://a.b/",
    url: "http://a.b/", methods: ["GET", "PATCH", "PATCH"], mark: 1, listener: true, end: [false, true], buffer: 0,
    constructors: ["object", "object"], transformer: [1, "string"], type: "text/html;a=b", iterables: "TypeError", trailing: "TypeError",
    abort: "failed", authorization: "none", rows: [["done", "value"], ["done", "value"]],
  });
});

test("each of them off", async () => {
  assert.deepEqual(await results(OFF), {
    files: "string", globals: [false, false, false, false, false, false], params: [true, ""], cookies: "undefined", location: "http://a.b",
    url: "http://a.b", methods: ["GET", "TypeError", "PATCH"], mark: 2, listener: false, end: [true, true], buffer: 4,
    constructors: ["Error", "Error"], transformer: [0, "object"], type: 'Text/HTML;A="b"', iterables: "a,b", trailing: "hello",
    abort: "waits", authorization: "secret", rows: [["done"], ["done"]],
  });
});
