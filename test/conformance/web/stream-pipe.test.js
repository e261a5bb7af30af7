// pipeTo() and pipeThrough(): https://streams.spec.whatwg.org/#readable-stream-pipe-to
import { assertEquals, assertRejects, assertThrows, test } from "../harness.js";

const tick = () => new Promise((resolve) => setTimeout(resolve, 0));
const recorder = (extra = {}) => {
  const seen = [];
  const stream = new WritableStream({
    write(chunk) { seen.push(chunk); },
    close() { seen.push("close"); },
    abort(reason) { seen.push(["abort", reason]); },
    ...extra,
  });
  return { seen, stream };
};

test("everything is written, then the destination is closed and both are unlocked", async () => {
  const { seen, stream } = recorder();
  const source = ReadableStream.from([1, 2, 3]);
  assertEquals(await source.pipeTo(stream), undefined);
  assertEquals(seen, [1, 2, 3, "close"]);
  assertEquals([source.locked, stream.locked], [false, false]);
});

test("preventClose leaves the destination open", async () => {
  const { seen, stream } = recorder();
  await ReadableStream.from([1]).pipeTo(stream, { preventClose: true });
  await ReadableStream.from([2]).pipeTo(stream);
  assertEquals(seen, [1, 2, "close"]);
});

test("an error of the source aborts the destination, unless preventAbort", async () => {
  const error = new Error("source");
  const failing = () => new ReadableStream({ start(c) { c.error(error); } });
  const one = recorder();
  assertEquals(await failing().pipeTo(one.stream).catch((e) => e), error);
  assertEquals(one.seen, [["abort", error]]);
  const two = recorder();
  assertEquals(await failing().pipeTo(two.stream, { preventAbort: true }).catch((e) => e), error);
  assertEquals(two.seen, []);
});

test("an error of the destination cancels the source, unless preventCancel", async () => {
  const error = new Error("sink");
  let cancelled;
  const make = () => new ReadableStream({ pull(c) { c.enqueue(1); }, cancel(r) { cancelled = r; } });
  assertEquals(await make().pipeTo(new WritableStream({ write() { throw error; } })).catch((e) => e), error);
  assertEquals(cancelled, error);
  cancelled = "not called";
  const source = make();
  await source.pipeTo(new WritableStream({ write() { throw error; } }), { preventCancel: true }).catch(() => {});
  assertEquals(cancelled, "not called");
  assertEquals(source.locked, false);
});

test("an abort signal stops the pipe and both ends", async () => {
  const { seen, stream } = recorder();
  let cancelled;
  const controller = new AbortController();
  const source = new ReadableStream({ cancel(r) { cancelled = r; } });
  const piped = source.pipeTo(stream, { signal: controller.signal });
  const reason = new Error("enough");
  controller.abort(reason);
  assertEquals(await piped.catch((e) => e), reason);
  assertEquals([cancelled, seen], [reason, [["abort", reason]]]);
}, { differs: { workerd: "a pipe that waits for its source does not notice the signal" } });

test("a signal that is aborted already", async () => {
  const { seen, stream } = recorder();
  const error = await ReadableStream.from([1]).pipeTo(stream, { signal: AbortSignal.abort("now") }).catch((e) => e);
  assertEquals(error, "now");
  assertEquals(seen, [["abort", "now"]]);
});

test("back-pressure: no more than the destination asks for is pulled", async () => {
  let pulls = 0;
  const source = new ReadableStream({ pull(c) { pulls++; c.enqueue(pulls); } }, { highWaterMark: 0 });
  let release;
  const stream = new WritableStream({ write: () => new Promise((r) => { release = r; }) }, { highWaterMark: 1 });
  source.pipeTo(stream).catch(() => {});
  await tick();
  await tick();
  assertEquals(pulls, 1);
  release();
  await tick();
  assertEquals(pulls, 2);
});

test("piping to a closed destination cancels the source with a TypeError", async () => {
  let cancelled;
  const source = new ReadableStream({ cancel(r) { cancelled = r; } });
  const stream = new WritableStream();
  await stream.close();
  await assertRejects(TypeError, source.pipeTo(stream));
  assertEquals(cancelled.constructor, TypeError);
});

test("pipeThrough() returns the readable side", async () => {
  const upper = new TransformStream({ transform(chunk, c) { c.enqueue(chunk.toUpperCase()); } });
  const result = ReadableStream.from(["a", "b"]).pipeThrough(upper);
  assertEquals(result, upper.readable);
  assertEquals(await Array.fromAsync(result), ["A", "B"]);
});

test("pipeThrough() checks its arguments", () => {
  assertThrows(TypeError, () => new ReadableStream().pipeThrough({}));
  assertThrows(TypeError, () => new ReadableStream().pipeThrough({ readable: new ReadableStream() }));
});

test("chunks enqueued later flow through a chain", async () => {
  let controller;
  const source = new ReadableStream({ start(c) { controller = c; } });
  const double = () => new TransformStream({ transform(chunk, c) { c.enqueue(chunk * 2); } });
  const done = Array.fromAsync(source.pipeThrough(double()).pipeThrough(double()));
  controller.enqueue(1);
  await tick();
  controller.enqueue(2);
  await tick();
  controller.close();
  assertEquals(await done, [4, 8]);
});

test("many chunks flow through a transform without a buffer", async () => {
  let n = 0;
  const source = new ReadableStream({ pull(c) { if (n === 500) c.close(); else c.enqueue(n++); } });
  const out = await Array.fromAsync(source.pipeThrough(new TransformStream()).pipeThrough(new TransformStream()));
  assertEquals([out.length, out[499]], [500, 499]);
});

test("I2, I3: a source may enqueue in the turn of the abort; the chunk is dropped", async () => {
  for (const preventAbort of [false, true]) {
    const { seen, stream } = recorder();
    const cancelled = [];
    let controller;
    const source = new ReadableStream({ start(c) { controller = c; }, cancel(r) { cancelled.push(r); } });
    const abort = new AbortController();
    const piped = source.pipeTo(stream, { signal: abort.signal, preventAbort });
    await tick();
    const reason = new Error("enough");
    abort.abort(reason);
    controller.enqueue("late");
    assertEquals(await piped.catch((e) => e), reason);
    assertEquals([cancelled, seen], [[reason], preventAbort ? [] : [["abort", reason]]]);
    assertEquals([source.locked, stream.locked], [false, false]);
  }
});

test("I4: the source is free when the destination hears of the abort", async () => {
  let signal, locked;
  const stream = new WritableStream({ start(c) { signal = c.signal; } });
  const source = new ReadableStream({});
  signal.addEventListener("abort", () => {
    locked = source.locked;
    source.getReader();
  });
  const error = await source.pipeTo(stream, { signal: AbortSignal.abort("now"), preventCancel: true }).catch((e) => e);
  assertEquals([error, locked, source.locked], ["now", false, true]);
});

test("I5: a destination that is being closed ends the pipe when it is closed", async () => {
  for (const preventCancel of [false, true]) {
    let release, reason;
    const stream = new WritableStream({ close: () => new Promise((r) => { release = r; }) });
    const closed = stream.close();
    const source = new ReadableStream({ cancel(r) { reason = r; } });
    source.pipeTo(stream, { preventCancel }).catch(() => {});
    await tick();
    assertEquals([source.locked, stream.locked], [true, true]);
    release();
    await closed;
    assertEquals([source.locked, stream.locked], [false, false]);
    assertEquals(reason?.message, preventCancel ? undefined : "This destination writable stream is closed.");
  }
});

test("a chunk that is no bytes ends a pipe into one of the platform's own streams", async () => {
  let cancelled;
  const source = new ReadableStream({
    start(c) { c.enqueue("text"); c.enqueue(5); },
    cancel(r) { cancelled = r; },
  });
  const reader = source.pipeThrough(new IdentityTransformStream()).getReader();
  assertEquals(new TextDecoder().decode((await reader.read()).value), "text");
  const error = await reader.read().catch((e) => e);
  assertEquals([error.name, error.message], ["TypeError", "This WritableStream only supports writing byte types."]);
  await tick();
  assertEquals(cancelled?.name, "TypeError");
}, { differs: { workerd: "it does not cancel the source then" } });
