// The worker that is called.
import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";

const seen = { waited: null };

class Cart extends RpcTarget {
  #items = [];
  add(item) { this.#items.push(item); return this.#items.length; }
  get total() { return this.#items.length; }
  self() { return this; }
}

export default class extends WorkerEntrypoint {
  count = 0;
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname === "/throw") throw Object.assign(new RangeError("thrown by fetch"), { code: 7 });
    if (url.pathname === "/moved") return new Response(null, { status: 302, headers: { location: "/here" } });
    if (url.pathname === "/loop") return Response.redirect("https://x/loop");
    if (url.pathname === "/nothing") return undefined;
    if (url.pathname === "/slow") await new Promise((resolve) => setTimeout(resolve, 2000));
    if (url.pathname === "/big") {
      let left = 64;
      return new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(65536)); if (--left === 0) c.close(); } }));
    }
    if (url.pathname === "/chunks") {
      let n = 0;
      for await (const chunk of request.body) n += chunk.length > 0 ? 1 : 0;
      return new Response(String(n));
    }
    if (url.pathname === "/size") return new Response(String((await request.arrayBuffer()).byteLength));
    return Response.json({ method: request.method, url: request.url, header: request.headers.get("x-test"), body: await request.text(), who: this.env.WHO },
      { status: 201, headers: { "x-from": "back" } });
  }
  next() { return ++this.count; }
  who(n) { return `${this.env.WHO}:${n}`; }
  props() { return this.ctx.props; }
  add(a, b) { return a + b; }
  async callback(f) { return (await f(10)) * 3; }
  cart() { return new Cart(); }
  stream() { return new Response("streamed text").body; }
  async read(stream) { return new Response(stream).text(); }
  async viaStub(box) { await box.put("k", 5); return box.get("k"); }
  throws() { throw Object.assign(new TypeError("thrown by rpc"), { code: 42 }); }
  aborts() { try { this.ctx.abort(new Error("enough")); } catch {} return "went on"; }
  endless() { for (;;); }
  async endlessLater() { await new Promise((resolve) => setTimeout(resolve, 1)); for (;;); }
  #secret() {}
  waits() {
    this.ctx.waitUntil(new Promise((resolve) => setTimeout(resolve, 20)).then(() => { seen.waited = "waited"; }));
    return "answered";
  }
  async waited() {
    while (seen.waited === null) await new Promise((resolve) => setTimeout(resolve, 5));
    return seen.waited;
  }
}

export class Admin extends WorkerEntrypoint {
  props() { return this.ctx.props; }
}

export const plain = {
  fetch: () => new Response("plain fetch"),
  double: (arg, env, ctx) => `${env.WHO}:${arg}`,
};

export class NotAnEntrypoint {}
