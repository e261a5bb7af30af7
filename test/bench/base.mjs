// What the comparisons with another commit share: its binary, and the rows.
import { execFileSync } from "node:child_process";
import { existsSync, symlinkSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { root } from "./lib.mjs";

const workers = path.join(root, "test/bench/workers");
export const configOf = (project) => path.join(workers, `wrangler.${project}.jsonc`);
export const probes = { serve: "/hello", objects: "/counter/memory", compiled: "/hello", front: "/hello", services: "/hello" };
export const setups = { services: "/setup" };
const only = process.env.BENCH_ONLY?.split(",");
export const rows = [
  { name: "hello", project: "serve", path: "/hello" },
  { name: "json", project: "serve", path: "/json?name=bob&page=3&tag=a&tag=b" },
  { name: "do-mem", project: "objects", path: "/counter/memory" },
  { name: "do-fetch", project: "objects", path: "/counter/fetch" },
  { name: "do-read", project: "objects", path: "/counter/read" },
  { name: "do-kv", project: "objects", path: "/counter/kv" },
  { name: "do-sql", project: "objects", path: "/counter/sql" },
  { name: "do-async", project: "objects", path: "/counter/async" },
  ...[ // requests with names; `fresh`: no name twice, so each round has its own
    { name: "many-write", luaArgs: ["/counter/sql?name=many", "random", 1000] },
    { name: "create", luaArgs: ["/create?name=new", "next"], fresh: true },
    { name: "ratelimit", luaArgs: ["/limit?name=", "random", 100] },
  ].map((row) => ({ ...row, project: "objects", path: "/", lua: path.join(root, "test/bench/names.lua") })),
  ...["js", "c"].flatMap((language) => [
    { name: `${language}-mem`, project: "compiled", path: `/${language}/counter/memory` },
    { name: `${language}-mem-100`, project: "compiled", path: `/${language}/counter/memory?times=100` },
    { name: `${language}-fetch`, project: "compiled", path: `/${language}/counter/fetch` },
    { name: `${language}-sql`, project: "compiled", path: `/${language}/counter/sql` },
    { name: `${language}-limit`, project: "compiled", path: `/${language}/limit?name=7` },
  ]),
  { name: "kv-get", project: "services", path: "/kv/get" },
  { name: "kv-put", project: "services", path: "/kv/put" },
  { name: "d1-insert", project: "services", path: "/d1/insert" },
  { name: "d1-select", project: "services", path: "/d1/select" },
  { name: "d1-batch", project: "services", path: "/d1/batch" },
  { name: "r2-put", project: "services", path: "/r2/put", connections: 8 },
  { name: "r2-get", project: "services", path: "/r2/get", connections: 8 },
  { name: "cache", project: "services", path: "/cache/match" },
  { name: "queue", project: "services", path: "/queue/send", connections: 8, until: "/queue/seen" }, // until that number stands still
  // A worker in C as well: no JavaScript runs.
  { name: "c-hello", project: "front", path: "/hello" },
  { name: "cc-mem", project: "front", path: "/counter/memory" },
  { name: "cc-read", project: "front", path: "/counter/read" },
  { name: "cc-sql", project: "front", path: "/counter/sql" },
  { name: "cc-limit", project: "front", path: "/limit?name=7" },
].filter((row) => !only || only.includes(row.name));

/** Builds `commit` in a work tree of its own below build/against: { id, binary }. */
export function build(commit) {
  const git = (...args) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  const id = git("rev-parse", "--short=12", `${commit}^{commit}`);
  const tree = path.join(root, "build/against", id);
  if (!existsSync(tree)) git("worktree", "add", "--detach", "--force", tree, id);
  if (!existsSync(path.join(tree, "node_modules"))) symlinkSync(path.join(root, "node_modules"), path.join(tree, "node_modules"));
  execFileSync("make", [`-j${os.cpus().length}`, "build/cairn"], { cwd: tree, stdio: ["ignore", "ignore", "inherit"] });
  return { id, binary: path.join(tree, "build/cairn") };
}

export const percent = (now, then) => `${now >= then ? "+" : ""}${((now / then - 1) * 100).toFixed(1)} %`;
