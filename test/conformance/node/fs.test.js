// node:fs: the file system in memory.
import { Buffer } from "node:buffer";
import fs from "node:fs";
import { assert, assertEquals, assertRejects, assertThrows, test, thrown } from "../harness.js";

const code = (f) => thrown(f)?.code;

let last = 0;
const folder = () => fs.mkdtempSync(`/tmp/t${last++}-`);

test("fs: files are written, read, appended to, truncated and removed", () => {
  const dir = folder();
  fs.writeFileSync(`${dir}/a`, "hello");
  fs.appendFileSync(`${dir}/a`, Buffer.from(" world"));
  assertEquals(fs.readFileSync(`${dir}/a`, "utf8"), "hello world");
  fs.truncateSync(`${dir}/a`, 4);
  assertEquals(fs.readFileSync(`${dir}/a`).toString("latin1"), "hell");
  fs.renameSync(`${dir}/a`, `${dir}/b`);
  fs.copyFileSync(`${dir}/b`, `${dir}/c`);
  assertEquals(fs.readdirSync(dir).sort(), ["b", "c"]);
  fs.unlinkSync(`${dir}/b`);
  fs.rmSync(dir, { recursive: true });
  assert(!fs.existsSync(dir));
});

test("fs: descriptors have positions; append writes at the end", () => {
  const dir = folder();
  const fd = fs.openSync(`${dir}/f`, "w+");
  fs.writeSync(fd, "abcdef");
  fs.writeSync(fd, Buffer.from("XY"), 0, 2, 1);
  const bytes = Buffer.alloc(4);
  assertEquals([fs.readSync(fd, bytes, 0, 4, 0), bytes.toString()], [4, "aXYd"]);
  fs.closeSync(fd);
  const again = fs.openSync(`${dir}/f`, "a+");
  fs.writeSync(again, "!", 0);
  assertEquals(fs.readFileSync(`${dir}/f`, "utf8"), "aXYdef!");
  fs.closeSync(again);
});

test("fs: codes of errors", () => {
  const dir = folder();
  fs.writeFileSync(`${dir}/f`, "");
  fs.mkdirSync(`${dir}/d/e`, { recursive: true });
  assertEquals([
    code(() => fs.readFileSync(`${dir}/none`)), code(() => fs.readdirSync(`${dir}/f`)), code(() => fs.readFileSync(dir)),
    code(() => fs.openSync(`${dir}/f`, "wx")), code(() => fs.rmdirSync(`${dir}/d`)), code(() => fs.unlinkSync(`${dir}/d`)),
    code(() => fs.writeFileSync("/bundle/x", "")), code(() => fs.readSync(12345, Buffer.alloc(1))), code(() => fs.readlinkSync(`${dir}/f`)),
    code(() => fs.cpSync(`${dir}/d`, `${dir}/d/e/f`, { recursive: true })), code(() => fs.accessSync(`${dir}/f`, fs.constants.X_OK)),
    code(() => fs.readFileSync(3.5)), code(() => fs.openSync(`${dir}/f`, "q")), code(() => fs.watch("/tmp")),
  ], ["ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "ENOTEMPTY", "EISDIR", "EPERM", "EBADF", "EINVAL", "ERR_FS_CP_EINVAL", "ENOENT", "ERR_OUT_OF_RANGE", "ERR_INVALID_ARG_VALUE", "ERR_UNSUPPORTED_OPERATION"]);
});

test("fs: links, and loops of them", () => {
  const dir = folder();
  fs.writeFileSync(`${dir}/f`, "x");
  fs.symlinkSync(`${dir}/f`, `${dir}/l`);
  assertEquals([fs.readFileSync(`${dir}/l`, "utf8"), fs.readlinkSync(`${dir}/l`), fs.lstatSync(`${dir}/l`).isSymbolicLink()], ["x", `${dir}/f`, true]);
  fs.symlinkSync(`${dir}/loop`, `${dir}/loop`);
  assertEquals(code(() => fs.readFileSync(`${dir}/loop`)), "ELOOP");
  fs.linkSync(`${dir}/f`, `${dir}/h`);
  fs.writeFileSync(`${dir}/f`, "changed");
  assertEquals(fs.readFileSync(`${dir}/h`, "utf8"), "changed");
});

test("fs: cp, glob, opendir", async () => {
  const dir = folder();
  for (const name of ["a/b", "a/c"]) fs.mkdirSync(`${dir}/${name}`, { recursive: true });
  for (const name of ["a/1.js", "a/b/2.js", "a/c/.3.js", "a/4.txt"]) fs.writeFileSync(`${dir}/${name}`, name);
  fs.cpSync(`${dir}/a`, `${dir}/copy`, { recursive: true });
  assertEquals(fs.readFileSync(`${dir}/copy/b/2.js`, "utf8"), "a/b/2.js");
  assertEquals(fs.globSync("a/**/*.js", { cwd: dir }).sort(), ["a/1.js", "a/b/2.js", "a/c/.3.js"]);
  assertEquals(fs.globSync("a/*.{js,txt}", { cwd: dir, exclude: ["**/4*"] }), ["a/1.js"]);
  const names = [];
  for await (const entry of await fs.promises.opendir(`${dir}/a`)) names.push([entry.name, entry.isDirectory()].join());
  assertEquals(names.sort(), ["1.js,false", "4.txt,false", "b,true", "c,true"]);
});

test("fs: callbacks come later, wrong arguments throw at once", async () => {
  const dir = folder();
  let later = false;
  const error = await new Promise((resolve) => {
    fs.stat(`${dir}/none`, resolve);
    later = true;
  });
  assertEquals([error.code, later], ["ENOENT", true]);
  assertThrows(TypeError, () => fs.stat({}, () => {}));
  assertThrows(TypeError, () => fs.stat(dir));
  assertEquals(fs.existsSync(`${dir}/none`), false);
});

test("fs: handles and streams", async () => {
  const dir = folder();
  const handle = await fs.promises.open(`${dir}/f`, "w+");
  await handle.writeFile("0123456789");
  const { bytesRead, buffer } = await handle.read({ buffer: Buffer.alloc(3), position: 2 });
  assertEquals([bytesRead, buffer.toString(), (await handle.stat()).size], [3, "234", 10]);
  await handle.close();
  await assertRejects(Error, handle.stat());
  let text = "";
  for await (const chunk of fs.createReadStream(`${dir}/f`, { start: 2, end: 5, highWaterMark: 2, encoding: "utf8" })) text += `${chunk},`;
  assertEquals(text, "23,45,");
  await new Promise((resolve, reject) => fs.createWriteStream(`${dir}/w`).on("error", reject).on("close", resolve).end("written"));
  assertEquals(fs.readFileSync(`${dir}/w`, "utf8"), "written");
});

test("fs: devices", () => {
  const fd = fs.openSync("/dev/zero", "r");
  const bytes = Buffer.alloc(4, 1);
  assertEquals([fs.readSync(fd, bytes), [...bytes], fs.statSync("/dev/null").isCharacterDevice(), fs.readFileSync("/dev/null").length], [4, [0, 0, 0, 0], true, 0]);
  assertEquals(code(() => fs.writeFileSync("/dev/full", "x")), "EPERM");
});
