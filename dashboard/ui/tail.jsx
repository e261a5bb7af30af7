// The live log: lines as they come, filtered here.
import { useEffect, useRef, useState } from "preact/hooks";
import { lines as streamLines } from "../lib/api.js";
import * as format from "../lib/format.js";
import { href } from "../lib/router.js";
import { Badge, Button } from "./parts.jsx";

const KEPT = 2000, SHOWN = 400;
let number = 0; // of lines, for keys

/** {lines, state, dropped, clear}; state: "connecting", "live", "paused" or an Error. Nothing comes while `paused`. */
export function useTail(paused) {
  const [tail, setTail] = useState({ lines: [], dropped: 0, state: "connecting" });
  useEffect(() => {
    if (paused) { setTail((tail) => ({ ...tail, state: "paused" })); return undefined; }
    const abort = new AbortController();
    let timer, waiting = [], frame;
    // Many lines may come at once: the page is drawn once for all.
    const flush = () => {
      frame = undefined;
      const batch = waiting;
      waiting = [];
      setTail((tail) => ({
        state: "live", dropped: tail.dropped + batch.reduce((sum, { dropped = 0 }) => sum + dropped, 0),
        lines: [...tail.lines, ...batch.filter(({ time }) => time).map((line) => ({ ...line, key: number++ }))].slice(-KEPT),
      }));
    };
    const run = async () => {
      setTail((tail) => ({ ...tail, state: "connecting" }));
      let problem = new Error("the stream ended");
      try {
        for await (const batch of streamLines("/api/tail", abort.signal)) {
          waiting.push(...batch);
          if (waiting.length > KEPT) waiting = waiting.slice(-KEPT);
          frame ??= setTimeout(flush, 50);
        }
      } catch (error) { problem = error; }
      if (abort.signal.aborted) return;
      setTail((tail) => ({ ...tail, state: problem }));
      timer = setTimeout(run, 2000);
    };
    run();
    return () => { abort.abort(); clearTimeout(timer); clearTimeout(frame); };
  }, [paused]);
  return { ...tail, clear: () => setTail((tail) => ({ ...tail, lines: [], dropped: 0 })) };
}

const levels = ["debug", "info", "warn", "error"];
export const levelOf = (line) => (line.event === "request" ? (Number(line.status) >= 500 || line.outcome === "exception" ? "error" : "info") : { warning: "warn", log: "info" }[line.level] ?? line.level ?? "info");

/** Whether a line passes: {worker, level (at least), kind: "requests"|"messages", status: "ok"|"error", text}. */
export function passes(line, { worker, level, kind, text }) {
  if (worker && line.worker !== worker) return false;
  if (level && levels.indexOf(levelOf(line)) < levels.indexOf(level)) return false;
  if (kind === "requests" && line.event !== "request") return false;
  if (kind === "messages" && line.event) return false;
  return !text || JSON.stringify(line).toLowerCase().includes(text.toLowerCase());
}

function Line({ line, narrow }) {
  const level = levelOf(line);
  const where = line.class && !narrow && (line.object ? <a href={href(["object", `${line.worker}/${line.class}`, line.object])}>{line.class} {line.name ?? format.brief(line.object, 8)}</a> : line.class);
  return (
    <div class={`line ${level}`} data-row tabIndex={-1}>
      <time>{format.clock(Date.parse(line.time), true)}</time>
      {line.event === "request"
        ? <><b class="status">{line.status}</b><span class="message">{line.method} {line.host}{line.target} <span class="faint">{line.durationMs} ms{line.outcome && line.outcome !== "ok" ? ` · ${line.outcome}` : ""}</span></span></>
        : <><b class="status">{level}</b><span class="message">{line.message}</span></>}
      <span class="where">{where}{!narrow && line.worker && <span class="faint"> {line.worker}</span>}{line.node && <span class="faint"> · {line.node}</span>}</span>
    </div>
  );
}

/** The lines that pass, the latest below, which stays in sight unless one has scrolled up. */
export function TailLines({ tail, lines, narrow, empty }) {
  const box = useRef();
  const follow = useRef(true);
  useEffect(() => { if (follow.current && box.current) box.current.scrollTop = box.current.scrollHeight; }, [lines]);
  const shown = lines.slice(-SHOWN);
  return (
    <div class="log card" ref={box} role="log" onScroll={({ currentTarget: element }) => { follow.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40; }}>
      {tail.dropped > 0 && <p class="hint">{format.count(tail.dropped)} lines were lost: too many for this connection</p>}
      {shown.length ? shown.map((line) => <Line key={line.key} line={line} narrow={narrow} />) : <p class="hint">{empty}</p>}
    </div>
  );
}

export function TailState({ tail, paused, onPause }) {
  const { state } = tail;
  return (
    <>
      {state instanceof Error ? <Badge kind="bad">{state.message}</Badge> : <Badge kind={state === "live" ? "good" : ""}>{state}</Badge>}
      <Button onClick={onPause}>{paused ? "Go on" : "Pause"}</Button>
      <Button onClick={() => tail.clear()}>Clear</Button>
    </>
  );
}
