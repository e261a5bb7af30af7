// The shared libraries that programs need, but for the C library's own: those that they name, those that these name, and
// those that they load later (--later):
//
//     node tools/package/libraries.mjs TRIPLET [--later NAME]... PROGRAM...
//
// writes a line for each: its path, the name that it is found by, and the Debian package with its version that it is of.
import { execFileSync } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import path from "node:path";

// What belongs to the kernel's loader: an archive uses that of the machine it is on.
const C_LIBRARY = /^(ld-linux.*|lib(c|m|dl|rt|util|pthread|resolv|nsl|anl|BrokenLocale|thread_db))\.so\.\d+$/;

const [triplet, ...rest] = process.argv.slice(2);
const later = [], programs = [];
for (let i = 0; i < rest.length; i++) (rest[i] === "--later" ? later.push(rest[++i]) : programs.push(rest[i]));
const folders = [`/lib/${triplet}`, `/usr/lib/${triplet}`];

function run(program, ...args) {
  return execFileSync(program, args, { encoding: "utf8", maxBuffer: 1 << 26 });
}

function neededBy(file) {
  return [...run("readelf", "-d", file).matchAll(/\(NEEDED\)\s+Shared library: \[(.*?)\]/g)].map(([, name]) => name);
}

/** The package of a file, which Debian may know by the path before /lib became a link to /usr/lib. */
function packageOf(file) {
  const paths = [file, file.replace(/^\/usr/, "")];
  for (const each of paths) {
    try {
      const owner = run("sh", "-c", 'dpkg-query -S "$1" 2>/dev/null', "sh", each).split("\n")[0].split(": ")[0];
      return run("dpkg-query", "-W", "-f", "${binary:Package} ${Version} ${source:Package} ${source:Version}", owner);
    } catch {
      continue;
    }
  }
  throw new Error(`no package has ${paths.join(" or ")}`);
}

const found = new Map();
const queue = [...programs.flatMap(neededBy), ...later];
for (let name = queue.shift(); name; name = queue.shift()) {
  if (found.has(name) || C_LIBRARY.test(name)) continue;
  const folder = folders.find((each) => existsSync(path.join(each, name)));
  if (!folder) {
    console.error(`libraries: ${name} is not in ${folders.join(" or ")}`);
    process.exit(1);
  }
  const file = realpathSync(path.join(folder, name));
  found.set(name, `${file} ${name} ${packageOf(file)}`);
  queue.push(...neededBy(file));
}
for (const name of [...found.keys()].sort()) console.log(found.get(name));
