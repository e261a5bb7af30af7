// FormData: https://xhr.spec.whatwg.org/#interface-formdata, and multipart/form-data
import { test, assert, assertEquals, assertThrows, assertRejects, assertInterface } from "../harness.js";

const parse = (body, type = "multipart/form-data; boundary=b") =>
  new Response(body, { headers: { "content-type": type } }).formData();
const plain = (form) => [...form].map(([k, v]) => [k, typeof v === "string" ? v : [v.name, v.type, v.size]]);

test("the interface", () => {
  assertInterface("FormData", {
    methods: { append: 2, delete: 1, get: 1, getAll: 1, has: 1, set: 2, entries: 0, keys: 0, values: 0, forEach: 1 },
  });
});

test("append, get, getAll, has, delete, set", () => {
  const f = new FormData();
  f.append("a", "1");
  f.append("b", 2);
  f.append("a", "3");
  assertEquals([f.get("a"), f.getAll("a"), f.get("b"), f.has("c"), f.get("c"), f.getAll("c")], ["1", ["1", "3"], "2", false, null, []]);
  f.set("a", "4");
  assertEquals([...f], [["a", "4"], ["b", "2"]]);
  f.set("d", "5");
  f.delete("a");
  assertEquals([...f.keys()], ["b", "d"]);
  assertEquals([...f.values()], ["2", "5"]);
  const seen = [];
  f.forEach((value, key, form) => seen.push([key, value, form === f]));
  assertEquals(seen, [["b", "2", true], ["d", "5", true]]);
});

test("blobs become files", () => {
  const f = new FormData();
  f.append("a", new Blob(["x"], { type: "t/x" }));
  f.append("b", new File(["y"], "n.txt", { lastModified: 7 }));
  f.append("c", new File(["z"], "n.txt"), "other");
  assert(f.get("a") instanceof File && f.get("b") instanceof File);
  assertEquals([f.get("b").name, f.get("b").lastModified, f.get("c").name], ["n.txt", 7, "other"]);
});

test("counts its arguments", () => {
  assertThrows(TypeError, () => new FormData().append("a"));
  assertThrows(TypeError, () => new FormData().get());
});

test("goes through multipart and back", async () => {
  const f = new FormData();
  f.append("text", "line 1\r\nline 2 é");
  f.append("empty", "");
  f.append("file", new File([new Uint8Array([0, 13, 10, 45, 45, 255])], "bin é.dat", { type: "a/b" }));
  f.append("none", new File([], "nothing"));
  const back = await new Response(f).formData();
  assertEquals(plain(back), [
    ["text", "line 1\r\nline 2 é"], ["empty", ""], ["file", ["bin é.dat", "a/b", 6]], ["none", ["nothing", "application/octet-stream", 0]],
  ]);
  assertEquals(await back.get("file").bytes(), new Uint8Array([0, 13, 10, 45, 45, 255]));
});

test("names are escaped in multipart", async () => {
  const f = new FormData();
  f.append('a"\nb', "x");
  assert((await new Response(f).text()).includes('name="a%22%0Ab"'));
});

test("parses parts with and without file names", async () => {
  const form = await parse(
    '--b\r\nContent-Disposition: form-data; name="x"; filename="f.txt"\r\nContent-Type: a/b\r\n\r\nhello\r\n' +
    '--b\r\ncontent-disposition: form-data; name="y"\r\n\r\nv\r\nw\r\n--b--\r\n');
  assertEquals(plain(form), [["x", ["f.txt", "a/b", 5]], ["y", "v\r\nw"]]);
});

test("takes quoted boundaries, a preamble, bare line feeds, escaped quotes", async () => {
  assertEquals(plain(await parse('--a b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n--a b--', 'multipart/form-data; boundary="a b"')), [["x", "1"]]);
  assertEquals(plain(await parse('before\r\n--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n--b--after')), [["x", "1"]]);
  assertEquals(plain(await parse('--b\nContent-Disposition: form-data; name="x"\n\n1\n--b--\n')), [["x", "1"]]);
  assertEquals(plain(await parse('--b\r\nContent-Disposition: form-data; name="a\\"b"\r\n\r\n1\r\n--b--')), [['a"b', "1"]]);
  assertEquals(plain(await parse("--b--")), []);
});

test("refuses malformed multipart", async () => {
  const head = 'Content-Disposition: form-data; name="x"';
  await assertRejects(TypeError, parse("x"), "No initial boundary string (or you have a truncated message).");
  await assertRejects(TypeError, parse(""));
  await assertRejects(TypeError, parse(`--b\r\n${head}\r\n\r\nhello`), "No subsequent boundary string after multipart message.");
  await assertRejects(TypeError, parse(`--b\r\n${head}\r\n\r\nhello\r\n--bx\r\n--b--`), "Boundary string was not succeeded by CRLF, LF, or '--'.");
  await assertRejects(TypeError, parse("--b\r\nX: y\r\n\r\nhello\r\n--b--"), "No valid Content-Disposition header found in FormData part.");
  await assertRejects(TypeError, parse('--b\r\nContent-Disposition: form-data; filename="a"\r\n\r\nx\r\n--b--'), "Content-Disposition header in FormData part is missing a name.");
  await assertRejects(TypeError, parse('--b\r\nContent-Disposition: x; name="a"\r\n\r\nx\r\n--b--'), /^Content-Disposition header for FormData part must have the value "form-data"/);
  await assertRejects(TypeError, parse("--b--", "multipart/form-data"), /^No boundary string in Content-Type header/);
});

test("a body ends with its last boundary", async () => {
  const form = new FormData();
  form.append("a", "1");
  for (const each of [new FormData(), form]) {
    const response = new Response(each);
    const boundary = /boundary="?([^"]+)/.exec(response.headers.get("content-type"))[1];
    const text = await response.text();
    assertEquals(text.slice(text.lastIndexOf("--" + boundary)), `--${boundary}--`);
  }
});

test("a body without a type is not touched by formData()", async () => {
  const stream = () => new ReadableStream({ start(c) { c.enqueue(new Uint8Array([97])); c.close(); } });
  for (const response of [new Response(stream()), new Response(new Uint8Array([97]))]) {
    await assertRejects(TypeError, response.formData());
    assertEquals([response.bodyUsed, await response.text()], [false, "a"]);
  }
});
