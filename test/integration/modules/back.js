// What code in C calls, and what calls objects in C.
import { WorkerEntrypoint } from "cloudflare:workers";

export class Named extends WorkerEntrypoint {
  who() {
    return this.ctx.props;
  }
}

export default class extends WorkerEntrypoint {
  add(a, b) {
    return a + b;
  }
  fails() {
    throw new RangeError("it fails");
  }
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/echo") return Response.json([request.method, request.url, await request.text(), request.headers.get("x-from")], { status: 201 });
    if (pathname === "/text") return new Response("plain");
    if (pathname === "/stream") return new Response(new ReadableStream({ pull: (controller) => { controller.enqueue(new Uint8Array(3)); controller.close(); } }));
    if (pathname === "/back/kv") {
      await this.env.KV.put("from js", "hello");
      const { value, metadata } = await this.env.KV.getWithMetadata("a");
      return Response.json([value, metadata]);
    }
    const method = pathname.slice("/back/thing/".length);
    const thing = this.env.THING.getByName("a");
    return Response.json(await thing[method](...await request.json()).then((value) => ({ value: value ?? null }), (error) => ({ error: error.message })));
  }
}
