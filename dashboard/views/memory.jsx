// The memory of the process: what it is, how much there may be, what has given way for want of it.
import * as format from "../lib/format.js";
import { samples, total } from "../lib/metrics.js";
import { Badge } from "../ui/parts.jsx";

const kinds = {
  heap: "JavaScript", bodies: "request bodies", answers: "answers on their way", websockets: "WebSocket messages", sqlite: "SQLite", log: "log", caches: "caches", other: "other",
};
const steps = {
  caches: "times caches were emptied", idle: "idle objects evicted", sockets: "slow readers closed", bodies: "bodies refused", requests: "requests refused", reset: "scripts or objects reset",
};
const levels = ["plenty", "caches are emptied", "idle objects leave", "slow readers are closed", "bodies are refused", "requests are refused", "the largest is reset"];
const WIDTH = 1000;

/** The account as the page shows it. */
export function account(families) {
  const bytes = (kind) => total(families, "memory_bytes", (labels) => labels.kind === kind);
  const used = total(families, "memory_used_bytes"), limit = total(families, "memory_limit_bytes");
  const parts = Object.entries(kinds).map(([kind, name], i) => ({ kind, name, color: `k${i}`, bytes: bytes(kind) })).filter((part) => part.bytes);
  const known = parts.reduce((sum, part) => sum + part.bytes, 0);
  const given = samples(families, "memory_relief_total").filter(({ value }) => value).map(({ labels, value }) => ({ step: labels.step, name: steps[labels.step] ?? labels.step, count: value }));
  return { used, limit, whole: Math.max(limit, used, known), parts, given, level: total(families, "memory_level") };
}

export function Memory({ families }) {
  const { used, limit, whole, parts, given, level } = account(families);
  if (!used) return null;
  let at = 0;
  const bars = parts.map((part) => {
    const x = at, width = (part.bytes / whole) * WIDTH;
    at += width;
    return <rect key={part.kind} class={part.color} x={x} y="0" width={width} height="12"><title>{`${part.name}: ${format.bytes(part.bytes)}`}</title></rect>;
  });
  return (
    <section class="memory" aria-label="Memory of the process">
      <header>
        <h2>Memory of the process</h2>
        <strong>{format.bytes(used)}</strong>
        <span class="soft">{limit ? `of ${format.bytes(limit)}, ${format.digits((used / limit) * 100)} %` : "no limit"}</span>
        <Badge kind={level === 0 ? "good" : level < 4 ? "warn" : "bad"}>{levels[level] ?? level}</Badge>
      </header>
      <svg class="bar" viewBox={`0 0 ${WIDTH} 12`} preserveAspectRatio="none" role="img" aria-label={parts.map((part) => `${part.name} ${format.bytes(part.bytes)}`).join(", ")}>{bars}</svg>
      <ul class="kinds">{parts.map((part) => <li key={part.kind}><i class={part.color} />{part.name} <b>{format.bytes(part.bytes)}</b></li>)}</ul>
      <p class="given">{given.length ? <>Gave way since the start: {given.map(({ step, name, count }, i) => <span key={step}>{i ? ", " : ""}{name} <b>{format.count(count)}</b></span>)}</> : <span class="faint">Nothing has given way for want of memory.</span>}</p>
    </section>
  );
}
