// Writes an image of the Open Container Initiative (image-spec 1.1) as one archive, with one image for each kind of machine:
//
//     node tools/package/image/oci.mjs OUT.tar VERSION REVISION ARCH=ROOT...
//
// ROOT is a file system that tools/package/image/root has made. The same input gives the same bytes. skopeo, podman,
// docker and containerd read it.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";

const [out, version, revision, ...roots] = process.argv.slice(2);
const epoch = process.env.SOURCE_DATE_EPOCH;
const created = new Date(epoch * 1000).toISOString().replace(/\.\d+/, "");
const layout = `${out}.layout`, blobs = path.join(layout, "blobs/sha256");
rmSync(layout, { recursive: true, force: true });
mkdirSync(blobs, { recursive: true });
const tarFlags = ["--sort=name", `--mtime=@${epoch}`, "--numeric-owner", "--format=gnu"];
const labels = {
  "org.opencontainers.image.title": "cairn", "org.opencontainers.image.version": version,
  "org.opencontainers.image.revision": revision, "org.opencontainers.image.licenses": "Apache-2.0",
  "org.opencontainers.image.description": "Server for Workers projects with Durable Objects",
};

const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");
function blob(mediaType, bytes) {
  const hash = digest(bytes);
  writeFileSync(path.join(blobs, hash), bytes);
  return { mediaType, digest: `sha256:${hash}`, size: bytes.length };
}
const json = (mediaType, value) => blob(mediaType, Buffer.from(JSON.stringify(value)));

function image(arch, root) {
  const file = `${layout}.layer`;
  // Everything is root's but the data directory.
  execFileSync("tar", [...tarFlags, "--owner=0", "--group=0", "--exclude=./data", "-C", root, "-cf", file, "."]);
  execFileSync("tar", [...tarFlags, "-C", root, "-rf", file, "./data"]);
  const bytes = readFileSync(file);
  const layer = blob("application/vnd.oci.image.layer.v1.tar+gzip",
    execFileSync("gzip", [process.env.LEVEL ?? "-9", "-nc", file], { maxBuffer: 1 << 30 }));
  rmSync(file);
  const config = json("application/vnd.oci.image.config.v1+json", {
    created, architecture: arch, os: "linux",
    config: {
      User: "65532:65532", WorkingDir: "/", Entrypoint: ["/usr/bin/cairn"], Cmd: ["serve"],
      Env: ["PATH=/usr/bin", "HOME=/data", "CAIRN_DATA=/data", "CAIRN_LISTEN=0.0.0.0:8787", "CAIRN_HEALTH=0.0.0.0:8789",
        "CAIRN_LOG=json"],
      ExposedPorts: { "8787/tcp": {}, "8788/tcp": {}, "8789/tcp": {} }, Volumes: { "/data": {} }, StopSignal: "SIGTERM",
      Labels: labels,
      // Docker's: the specification has no health checks, and takes no offence at a key of others.
      Healthcheck: { Test: ["CMD", "/usr/bin/cairn", "health"], Interval: 10e9, Timeout: 5e9, StartPeriod: 60e9, Retries: 3 },
    },
    rootfs: { type: "layers", diff_ids: [`sha256:${digest(bytes)}`] },
    history: [{ created, created_by: "make image" }],
  });
  return {
    ...json("application/vnd.oci.image.manifest.v1+json",
      { schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", config, layers: [layer], annotations: labels }),
    platform: { architecture: arch, os: "linux" },
  };
}

const images = roots.map((each) => each.split("=")).map(([arch, root]) => image(arch, root));
// What it is called once it is loaded: the first for podman, the second for docker and containerd.
const named = { "org.opencontainers.image.ref.name": `cairn:${version}`, "io.containerd.image.name": `docker.io/library/cairn:${version}` };
// An index of several images is one blob that has the name.
const all = images.length === 1 ? { ...images[0], annotations: named } : {
  ...json("application/vnd.oci.image.index.v1+json",
    { schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests: images }),
  annotations: named,
};
writeFileSync(path.join(layout, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
writeFileSync(path.join(layout, "index.json"), JSON.stringify({ schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests: [all] }));
execFileSync("tar", [...tarFlags, "--owner=0", "--group=0", "-C", layout, "-cf", out, "oci-layout", "index.json", "blobs"]);
rmSync(layout, { recursive: true });
console.log(`${out}: ${(statSync(out).size / 1e6).toFixed(0)} MB, ${images.length === 1 ? "an image" : `${images.length} images`}`);
