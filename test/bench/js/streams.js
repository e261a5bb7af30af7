// Throughput of the streams: 100 MB through an identity transform, a pipe and a tee, 10 MB through
// gzip. Runs with build/jsrun, and as the body of a worker's fetch() elsewhere.
//
// The figures are milliseconds of wall time; chunks have 64 KiB unless said otherwise.
globalThis.benchStreams = async function (now, print) {
  const MB = 1 << 20;
  const chunk = new Uint8Array(65536).map((_, i) => (i * 31) & 255);
  const source = (bytes, size = chunk.length) => {
    const piece = chunk.subarray(0, size);
    let left = bytes;
    return new ReadableStream({
      pull(c) {
        if (left <= 0) return c.close();
        left -= size;
        return c.enqueue(piece);
      },
    });
  };
  const drain = async (stream) => {
    const reader = stream.getReader();
    let bytes = 0;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return bytes;
      bytes += value.length;
    }
  };
  const measure = async (name, expected, run) => {
    let best = Infinity;
    for (let i = 0; i < 3; i++) {
      const begin = now();
      const got = await run();
      best = Math.min(best, now() - begin);
      if (got !== expected) throw new Error(`${name}: ${got} bytes instead of ${expected}`);
    }
    print(`${name}: ${best.toFixed(1)} ms`);
  };
  const sink = () => {
    const state = { bytes: 0 };
    state.stream = new WritableStream({ write(c) { state.bytes += c.length; } });
    return state;
  };

  await measure("read 100 MB", 100 * MB, () => drain(source(100 * MB)));
  await measure("read 100 MB in chunks of 1 KiB", 100 * MB, () => drain(source(100 * MB, 1024)));
  await measure("transform 100 MB", 100 * MB, () => drain(source(100 * MB).pipeThrough(new TransformStream())));
  await measure("transform 100 MB in chunks of 1 KiB", 100 * MB, () =>
    drain(source(100 * MB, 1024).pipeThrough(new TransformStream())));
  await measure("identity 100 MB", 100 * MB, () => drain(source(100 * MB).pipeThrough(new IdentityTransformStream())));
  await measure("pipeTo 100 MB", 100 * MB, async () => {
    const to = sink();
    await source(100 * MB).pipeTo(to.stream);
    return to.bytes;
  });
  await measure("pipeTo 100 MB in chunks of 1 KiB", 100 * MB, async () => {
    const to = sink();
    await source(100 * MB, 1024).pipeTo(to.stream);
    return to.bytes;
  });
  await measure("tee 100 MB", 200 * MB, async () => {
    const [a, b] = source(100 * MB).tee();
    const [x, y] = await Promise.all([drain(a), drain(b)]);
    return x + y;
  });

  const words = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor".split(" ");
  let seed = 7;
  let text = "";
  while (text.length < 65536) {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    text += `${words[(seed >> 8) % words.length]}${seed % 97} `;
  }
  const page = new TextEncoder().encode(text).subarray(0, 65536);
  const pages = () => {
    let left = 160;
    return new ReadableStream({ pull(c) { return left-- > 0 ? c.enqueue(page) : c.close(); } });
  };
  await measure("gzip 10 MB", 1, async () => ((await drain(pages().pipeThrough(new CompressionStream("gzip")))) > 0 ? 1 : 0));
  const packed = await new Response(pages().pipeThrough(new CompressionStream("gzip"))).bytes();
  print(`gzip 10 MB gives ${packed.length} bytes`);
  await measure("gunzip 10 MB", 10 * MB, () => drain(new Response(packed).body.pipeThrough(new DecompressionStream("gzip"))));
  const whole = new Uint8Array(10 * MB);
  for (let i = 0; i < 160; i++) whole.set(page, i * 65536);
  await measure("gzip 10 MB in one chunk", 1, async () =>
    ((await drain(ReadableStream.from([whole]).pipeThrough(new CompressionStream("gzip")))) > 0 ? 1 : 0));
};
if (globalThis.__native) {
  globalThis.benchStreams(() => __native.monotonicTime(), (line) => console.log(line)).catch((e) => console.log(`${e}\n${e.stack}`));
}
