import { error, json } from "@sveltejs/kit";

export async function POST({ request, url }) {
  if (url.searchParams.has("fail")) error(418, "on purpose");
  return json({ got: await request.json(), q: url.searchParams.get("q") });
}
export function GET({ platform, getClientAddress }) {
  const lines = ["data: one\n\n", "data: two\n\n"];
  const body = new ReadableStream({
    pull(controller) {
      const line = lines.shift();
      if (line) controller.enqueue(new TextEncoder().encode(line));
      else controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream", "x-address": getClientAddress(), "x-caches": String(!!platform.caches.default) } });
}
