// CountQueuingStrategy and ByteLengthQueuingStrategy: https://streams.spec.whatwg.org/#qs
import { test, assertEquals, assertInterface, assertThrows } from "../harness.js";

test("queuing strategies", () => {
  const count = new CountQueuingStrategy({ highWaterMark: 3 });
  const length = new ByteLengthQueuingStrategy({ highWaterMark: 4 });
  assertEquals([count.highWaterMark, count.size("anything"), length.highWaterMark, length.size(new Uint8Array(7))], [3, 1, 4, 7]);
  assertThrows(TypeError, () => new CountQueuingStrategy());
  assertInterface("CountQueuingStrategy", { length: 1, getters: ["highWaterMark", "size"] });
});
