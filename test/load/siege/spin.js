// Takes CPU time without end; its limit is what bounds each turn.
import { DurableObject } from "cloudflare:workers";

let born = 0;
export class Spinner extends DurableObject {
  spin() { for (;;) born++; }
  alarm() { for (;;) born++; }
}

export default {
  async fetch(request, env) {
    const what = new URL(request.url).pathname.slice(1);
    if (what === "loop") for (;;) born++;
    if (what === "microtasks") for (;;) await null;
    if (what === "object") return new Response(await env.SPINNER.getByName("x").spin());
    if (what === "list") return new Response(String(Object.keys(new Uint8Array(2e7)).length));
    if (what === "json") return new Response(String(JSON.stringify(Array.from({ length: 3e6 }, (_, n) => ({ n }))).length));
    if (what === "sort") return new Response(String(Array.from({ length: 3e6 }, () => Math.random()).sort().length));
    if (what === "regexp") return new Response(String(/^(a+)+$/.test("a".repeat(40) + "b")));
    return new Response("here");
  },
};
