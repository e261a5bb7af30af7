// The server's metrics, asked for every two seconds: the last ten minutes of what changes, for charts.
import { useEffect, useState } from "preact/hooks";
import { hasToken, send } from "./api.js";

const EVERY_MS = 2000;
const KEPT = 300;

/** Prometheus text as {name: [{labels, value}]}. */
export function parse(text) {
  const families = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, name, value] of (match[2] ?? "").matchAll(/([a-z]+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value.replace(/\\n/g, "\n").replace(/\\(.)/g, "$1");
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

/** What the charts show of one scrape. */
function point(at, after, before, seconds) {
  const rate = (name, fits) => Math.max(0, total(after, name, fits) - total(before, name, fits)) / seconds;
  const status = (...classes) => rate("requests_total", ({ status }) => classes.includes(status));
  const requests = "request_duration_seconds", flush = "log_flush_duration_seconds";
  return {
    at,
    ok: status("1xx", "2xx", "3xx"), client: status("4xx"), failed: status("5xx", "none"),
    refused: rate("refusals_total"), exceptions: rate("worker_exceptions_total"), limits: rate("worker_limits_total"),
    p50: quantile(after, before, requests, 0.5), p99: quantile(after, before, requests, 0.99),
    objects: total(after, "lane_objects"), started: rate("objects_started_total"), calls: rate("object_calls_total", ({ namespace }) => !namespace.startsWith("$")),
    flush50: quantile(after, before, flush, 0.5), flush99: quantile(after, before, flush, 0.99), commits: rate("log_commits_total"), written: rate("log_written_bytes_total"),
    memory: total(after, "process_resident_memory_bytes"), heap: total(after, "lane_heap_bytes"),
    cpu: rate("process_cpu_seconds_total"),
  };
}

async function scrape() {
  const at = Date.now();
  try {
    const families = parse(await (await send("GET", "/metrics")).text());
    const { families: before, at: last } = state;
    Object.assign(state, { families, before, at, seconds: last ? (at - last) / 1000 : 1, error: undefined });
    // After a pause (a hidden tab), or a restart of the server, rates would be wrong.
    const restarted = before && total(families, "process_cpu_seconds_total") < total(before, "process_cpu_seconds_total");
    if (restarted) state.before = undefined;
    else if (before) state.points = [...state.points.slice(1 - KEPT), point(at, families, before, state.seconds)];
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
