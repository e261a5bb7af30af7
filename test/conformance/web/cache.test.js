// caches: what the platform has of https://w3c.github.io/ServiceWorker/#cache-objects
import { test, assert, assertEquals, assertRejects, assertThrows } from "../harness.js";

test("methods that are there in name only say so", () => {
  for (const name of ["delete", "has", "keys", "match"]) assertThrows(Error, () => caches[name]("x"), `Failed to execute '${name}' on 'CacheStorage': the method is not implemented.`);
  for (const name of ["add", "addAll", "keys", "matchAll"]) assertThrows(Error, () => Cache.prototype[name].call(caches.default, "http://a/"), `Failed to execute '${name}' on 'Cache': the method is not implemented.`);
});

test("open() needs a name", async () => {
  await assertRejects(TypeError, async () => caches.open(), "Failed to execute 'open' on 'CacheStorage': parameter 1 is not of type 'string'.");
  assert((await caches.open("x")) instanceof Cache);
  assertEquals(caches.default === caches.default, true);
});
