// The server's metrics, asked for every two seconds, and what it has kept of the last ten minutes, for charts.
import { useEffect, useState } from "preact/hooks";
import { get, hasToken, send } from "./api.js";

const EVERY_MS = 2000;
const KEPT = 420;

/** Prometheus text as {name: [{labels, value}]}. */
export function parse(text) {
  const families = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, name, value] of (match[2] ?? "").matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value.replace(/\\n/g, "\n").replace(/\\(.)/g, "$1");
    let list = families.get(match[1]);
    if (!list) families.set(match[1], (list = []));
    list.push({ labels, value: Number(match[3]) });
  }
  return families;
}

export const samples = (families, name) => families?.get(`cairn_${name}`) ?? [];
/** The sum of those whose labels fit. */
export function total(families, name, fits = () => true) {
  let sum = 0;
  for (const { labels, value } of samples(families, name)) if (fits(labels)) sum += value;
  return sum;
}

/** The buckets of a histogram that fit, added up: [[bound, count up to it]]. */
function buckets(families, name, fits) {
  const sums = new Map();
  for (const { labels, value } of samples(families, `${name}_bucket`)) {
    if (!fits(labels)) continue;
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    sums.set(bound, (sums.get(bound) ?? 0) + value);
  }
  return [...sums].sort(([a], [b]) => a - b);
}

/** A quantile of what a histogram gained between two scrapes (`before` may be absent); undefined if nothing. */
export function quantile(after, before, name, q, fits = () => true) {
  const old = new Map(before ? buckets(before, name, fits) : []);
  const gained = buckets(after, name, fits).map(([bound, count]) => [bound, count - (old.get(bound) ?? 0)]);
  const all = gained.at(-1)?.[1] ?? 0;
  if (all <= 0) return undefined;
  let low = 0, below = 0;
  for (const [bound, count] of gained) {
    if (count >= all * q) return bound === Infinity ? low : low + ((bound - low) * (all * q - below)) / (count - below || 1);
    low = bound;
    below = count;
  }
  return undefined;
}

// --- the past ten minutes ---

const state = { points: [], families: undefined, before: undefined, seconds: 1, error: undefined };
const listeners = new Set();

/** What the charts need of one scrape, all of it counted since the start: as /api/recent has it. */
function sums(at, families) {
  const status = (...classes) => total(families, "requests_total", ({ status }) => classes.includes(status));
  const ranges = (name) => buckets(families, name, () => true).map(([, count], i, list) => count - (list[i - 1]?.[1] ?? 0));
  return {
    at, ok: status("1xx", "2xx", "3xx"), client: status("4xx"), failed: status("5xx", "none"), refused: total(families, "refusals_total"), exceptions: total(families, "worker_exceptions_total"),
    objects: total(families, "lane_objects"), started: total(families, "objects_started_total"), memory: total(families, "process_resident_memory_bytes"), heap: total(families, "lane_heap_bytes"),
    cpu: total(families, "process_cpu_seconds_total"), commits: total(families, "log_commits_total"), written: total(families, "log_written_bytes_total"),
    latency: ranges("request_duration_seconds"), flush: ranges("log_flush_duration_seconds"),
  };
}

/** What the charts show: rates and percentiles between two moments. */
function point(after, before) {
  const seconds = (after.at - before.at) / 1000;
  const out = { at: after.at, objects: after.objects, memory: after.memory, heap: after.heap };
  for (const name of ["ok", "client", "failed", "refused", "exceptions", "started", "cpu", "commits", "written"]) out[name] = Math.max(0, after[name] - before[name]) / seconds;
  for (const name of ["latency", "flush"]) {
    const gained = after[name].map((count, i) => count - (before[name][i] ?? 0));
    out[`${name}50`] = rank(gained, 0.5);
    out[`${name}99`] = rank(gained, 0.99);
  }
  return out;
}

let bounds = []; // of the ranges of a histogram, from /api/recent
function rank(counts, q) {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all <= 0) return undefined;
  let seen = 0;
  for (const [i, count] of counts.entries()) {
    if (seen + count >= all * q) {
      const low = bounds[i - 1] ?? 0;
      return bounds[i] === undefined ? low : low + ((bounds[i] - low) * (all * q - seen)) / (count || 1);
    }
    seen += count;
  }
  return undefined;
}

/** The points that the server has kept. After a restart the counters are smaller than before. */
function pointsOf(list) {
  const points = [];
  for (let i = 1; i < list.length; i++) if (list[i].cpu >= list[i - 1].cpu && list[i].at > list[i - 1].at) points.push(point(list[i], list[i - 1]));
  return points;
}

async function loadPast() {
  const recent = await get("/api/recent");
  bounds = recent.bounds;
  const names = ["at", ...recent.values, ...recent.histograms];
  const ahead = Date.now() - recent.now; // of this clock
  const list = recent.points.map(([time, ...values]) => Object.fromEntries([time + ahead, ...values].map((value, i) => [names[i], value])));
  state.points = pointsOf(list);
  state.sums = list.at(-1);
}

async function scrape() {
  try {
    if (!state.sums) await loadPast();
    const families = parse(await (await send("GET", "/metrics")).text());
    const at = Date.now(), now = sums(at, families);
    Object.assign(state, { before: state.families, families, seconds: (at - (state.at ?? at - 1000)) / 1000, at, error: undefined });
    if (state.before && now.cpu < state.sums.cpu) state.before = undefined; // restarted
    state.points = [...state.points, ...pointsOf([state.sums, now])].slice(-KEPT);
    state.sums = now;
  } catch (error) {
    state.error = error;
  }
  for (const listener of listeners) listener({ ...state });
}

let timer;
function tick() {
  timer = setTimeout(tick, EVERY_MS);
  if (!document.hidden && hasToken()) scrape();
}

/** {points, families, before, seconds, error}, anew with each scrape. The first view that asks starts it. */
export function useMetrics() {
  const [current, setCurrent] = useState(() => ({ ...state }));
  useEffect(() => {
    listeners.add(setCurrent);
    if (!timer) {
      scrape();
      // The second comes soon, so that there is a rate to show.
      timer = setTimeout(tick, EVERY_MS / 4);
    }
    return () => listeners.delete(setCurrent);
  }, []);
  return current;
}
