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
      case "/cpu":
        return Response.json(digest(Number(url.searchParams.get("seed") || 12345), 9500));
    }
    return new Response("not found", { status: 404 });
  },
};
