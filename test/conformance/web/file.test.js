// File: https://w3c.github.io/FileAPI/#file-section
import { test, assert, assertEquals, assertThrows, assertInterface } from "../harness.js";

test("the interface", () => {
  assertInterface("File", { length: 2, getters: ["name", "lastModified"] });
  assert(Object.getPrototypeOf(File.prototype) === Blob.prototype);
});

test("has a name, a time, and what a Blob has", async () => {
  const file = new File(["ab"], "n.txt", { type: "T/X", lastModified: 5 });
  assert(file instanceof Blob);
  assertEquals([file.name, file.lastModified, file.type, file.size, await file.text()], ["n.txt", 5, "t/x", 2, "ab"]);
  assertEquals(Math.abs(new File([], "x").lastModified - Date.now()) < 60000, true);
});

test("needs parts and a name", () => {
  assertThrows(TypeError, () => new File());
  assertThrows(TypeError, () => new File(["a"]));
  assertThrows(TypeError, () => new File("a", "b"));
});

test("slices are Blobs", () => {
  assertEquals(new File(["abc"], "n").slice(0, 1).constructor, Blob);
});

test("can be cloned", async () => {
  const file = structuredClone(new File(["ab"], "n.txt", { type: "t/x", lastModified: 5 }));
  assert(file instanceof File);
  assertEquals([file.name, file.type, file.lastModified, await file.text()], ["n.txt", "t/x", 5, "ab"]);
}, { differs: { workerd: "workerd cannot clone a File" } });
