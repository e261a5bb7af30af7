// navigator: https://developers.cloudflare.com/workers/runtime-apis/web-standards/#navigatoruseragent
import { test, assert, assertEquals, assertThrows } from "../harness.js";

test("navigator", () => {
  assertEquals([navigator.userAgent, navigator.language, navigator.languages], ["Cloudflare-Workers", "en", ["en"]]);
  assert(navigator.hardwareConcurrency >= 1);
  assertEquals(Object.prototype.toString.call(navigator), "[object Navigator]");
  assertThrows(TypeError, () => new Navigator());
});
