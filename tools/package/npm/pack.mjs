// Makes the npm packages from what tools/package/stage has put together:
//
//     node tools/package/npm/pack.mjs OUT VERSION STAGE...
//
// writes OUT/cairn-VERSION.tgz, whose program starts that of the package for the machine, and for each STAGE
// (.../cairn-VERSION-linux-ARCH) OUT/cairn-linux-ARCH-VERSION.tgz. The same input gives the same bytes.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const ARCHS = ["x64", "arm64"];
const [out, version, ...stages] = process.argv.slice(2);
const own = path.dirname(fileURLToPath(import.meta.url));
const common = { version, license: "Apache-2.0", os: ["linux"], engines: {} };

function pack(name, description, fill) {
  const folder = path.join(out, "package");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  fill(folder);
  writeFileSync(path.join(folder, "package.json"), `${JSON.stringify({ name, ...common, ...description }, null, 2)}\n`);
  const file = path.join(out, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`);
  const tar = execFileSync("tar", ["--sort=name", `--mtime=@${process.env.SOURCE_DATE_EPOCH}`, "--owner=0", "--group=0",
    "--numeric-owner", "--format=ustar", "-C", out, "-cf", "-", "package"], { maxBuffer: 1 << 30 });
  writeFileSync(file, execFileSync("gzip", [process.env.LEVEL ?? "-9", "-n"], { input: tar, maxBuffer: 1 << 30 }));
  rmSync(folder, { recursive: true });
  console.log(file);
}

mkdirSync(out, { recursive: true });
for (const stage of stages) {
  const arch = ARCHS.find((each) => stage.endsWith(`-linux-${each}`));
  if (!arch) throw new Error(`${stage}: not .../cairn-VERSION-linux-ARCH`);
  pack(`@cairn/linux-${arch}`, {
    description: `The program of cairn for Linux on ${arch}`, cpu: [arch], libc: ["glibc"], preferUnplugged: true,
  }, (folder) => {
    for (const each of ["bin", "lib", "include", "share/pkgconfig", "share/doc"]) {
      cpSync(path.join(stage, each), path.join(folder, each), { recursive: true });
    }
    rmSync(path.join(folder, "lib/cairn/install.sh"));
    writeFileSync(path.join(folder, "README.md"), `# @cairn/linux-${arch}\n\nThe program of the package cairn for Linux on ${arch}.\n`);
  });
}
pack("cairn", {
  description: "Runs Workers projects with Durable Objects on your own machines", bin: { cairn: "bin/cairn" },
  optionalDependencies: Object.fromEntries(ARCHS.map((arch) => [`@cairn/linux-${arch}`, version])),
}, (folder) => {
  mkdirSync(path.join(folder, "bin"));
  cpSync(path.join(own, "cairn"), path.join(folder, "bin/cairn"));
  chmodSync(path.join(folder, "bin/cairn"), 0o755);
  cpSync(path.join(own, "README.md"), path.join(folder, "README.md"));
});
