// Requests and messages of all workers, while they happen.
import { useMemo, useState } from "preact/hooks";
import { go } from "../lib/router.js";
import { Head, Search, Select } from "../ui/parts.jsx";
import { passes, TailLines, TailState, useTail } from "../ui/tail.jsx";

export function Logs({ route }) {
  const { worker = "", level = "", kind = "" } = route.query;
  const [text, setText] = useState(route.query.q ?? "");
  const [paused, setPaused] = useState(false);
  const tail = useTail(paused);
  const change = (values) => go(["logs"], { worker, level, kind, ...values }, { replace: true });
  const lines = useMemo(() => tail.lines.filter((line) => passes(line, { worker, level, kind, text })), [tail.lines, worker, level, kind, text]);
  const workers = useMemo(() => [...new Set([...tail.lines.map(({ worker }) => worker).filter(Boolean), ...(worker ? [worker] : [])])].sort(), [tail.lines, worker]);
  return (
    <>
      <Head title="Logs"><TailState tail={tail} paused={paused} onPause={() => setPaused(!paused)} /></Head>
      <div class="tools">
        <Search value={text} onInput={setText} placeholder="Text in a line" />
        <Select label="Worker" value={worker} onChange={(worker) => change({ worker })} options={[["", "All workers"], ...workers.map((name) => [name, name])]} />
        <Select label="Kind" value={kind} onChange={(kind) => change({ kind })} options={[["", "Everything"], ["requests", "Requests"], ["messages", "Messages"]]} />
        <Select label="Level" value={level} onChange={(level) => change({ level })} options={[["", "All levels"], ["info", "info and above"], ["warn", "warnings and errors"], ["error", "errors"]]} />
      </div>
      <TailLines tail={tail} lines={lines} empty={tail.lines.length ? "No line passes the filters." : "Lines are shown here from now on, as they come."} />
    </>
  );
}
