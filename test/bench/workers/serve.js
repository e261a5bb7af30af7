// The stateless workloads of `make bench`: the same script on cairn and on workerd.

// About 5 ms of plain JavaScript: sort pseudo-random samples, merge them into centroids.
function digest(seed, count) {
  let s = seed >>> 0 || 1;
  const samples = [];
  for (let i = 0; i < count; i++) {
    s ^= s << 13; s >>>= 0; s ^= s >>> 17; s ^= s << 5; s >>>= 0;
    samples.push({ mean: -Math.log((s + 1) / 4294967297), weight: 1 });
  }
  samples.sort((a, b) => a.mean - b.mean);
  const out = [];
  let last = null, done = 0;
  for (const sample of samples) {
    if (last) {
      const q = (done + last.weight / 2) / count;
      if (last.weight + 1 <= Math.max(1, (4 * count * q * (1 - q)) / 100)) {
        last.weight++;
        last.mean += (sample.mean - last.mean) / last.weight;
        continue;
      }
      done += last.weight;
      out.push(last);
    }
    last = { mean: sample.mean, weight: 1 };
  }
  out.push(last);
  return { centroids: out.length, median: out[out.length >> 1].mean };
}

// What the longer workloads work on, made when first asked for.
const kept = new Map();
function once(name, make) {
  if (!kept.has(name)) kept.set(name, make());
  return kept.get(name);
}

/** Text that compresses as text does, 4:1. */
function words(size) {
  const vocabulary = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor".split(" ");
  let seed = 7, text = "";
  while (text.length < 65536) {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    text += `${vocabulary[(seed >> 8) % vocabulary.length]}${seed % 97} `;
  }
  const page = new TextEncoder().encode(text).subarray(0, 65536);
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += page.length) bytes.set(page.subarray(0, size - at), at);
  return bytes;
}

/** `bytes` in chunks of 64 KiB, `times` times over. */
function chunks(bytes, times = 1) {
  let at = 0, left = times;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) at = 0, left--;
      if (left === 0) return controller.close();
      controller.enqueue(bytes.subarray(at, at += 65536));
    },
  });
}

async function size(stream) {
  let total = 0;
  for await (const chunk of stream) total += chunk.length;
  return total;
}

const TEN = 10 << 20;
const page = () => `<!doctype html><title>t</title><body>${'<div class="a"><p>some words <a href="/x?y=1">a link</a> &amp; more</p></div>\n'.repeat(14000)}`;

export default {
  async fetch(request) {
    const url = new URL(request.url);
    switch (url.pathname) {
      case "/hello":
        return new Response("hello");
      case "/json":
        return Response.json({
          path: url.pathname,
          name: url.searchParams.get("name"),
          page: Number(url.searchParams.get("page") || 1),
          tags: url.searchParams.getAll("tag"),
          ok: true,
        });
      case "/headers": {
        const headers = new Headers(request.headers);
        headers.set("x-seen", "1");
        return new Response(url.search, { headers: { "x-count": String([...headers].length), "x-host": url.host } });
      }
      case "/echo-json":
        return Response.json(await request.json());
      case "/echo-stream":
        return new Response(request.body);
      case "/echo-text":
        return new Response(await request.text());
      case "/echo-bytes":
        return new Response(await request.arrayBuffer());
      case "/transform": // 100 MB, a chunk of 64 KiB at a time, sent to the client
        return new Response(chunks(once("megabyte", () => words(1 << 20)), 100)
          .pipeThrough(new TransformStream({ transform: (chunk, controller) => controller.enqueue(chunk) })));
      case "/gzip": {
        const zipped = chunks(once("text", () => words(TEN))).pipeThrough(new CompressionStream("gzip"));
        return new Response(String(await size(zipped)));
      }
      case "/sha256": {
        const hash = await crypto.subtle.digest("SHA-256", once("text", () => words(TEN)));
        return new Response(String(new Uint8Array(hash)[0]));
      }
      case "/aes-gcm": {
        const key = await once("key", () => crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt"]));
        const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, key, once("text", () => words(TEN)));
        return new Response(String(sealed.byteLength));
      }
      case "/html": { // 1 MB, a handler per link, sent to the client
        const rewriter = new HTMLRewriter().on("a[href]", {
          element(element) {
            element.setAttribute("href", element.getAttribute("href") + "&z=2");
          },
        });
        return rewriter.transform(new Response(once("page", page), { headers: { "content-type": "text/html" } }));
      }
      case "/cpu":
        return Response.json(digest(Number(url.searchParams.get("seed") || 12345), 9500));
    }
    return new Response("not found", { status: 404 });
  },
};
