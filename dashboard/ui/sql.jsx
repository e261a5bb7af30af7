// Results of SQL, and the console that makes them: for objects and for D1.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as format from "../lib/format.js";
import { Badge, Button, Empty, Trouble } from "./parts.jsx";

/** A name in SQL. */
export const quote = (name) => `"${name.replaceAll('"', '""')}"`;

/** A value as SQLite has it. */
export function Value({ value }) {
  if (value === null || value === undefined) return <span class="faint">NULL</span>;
  if (typeof value === "object" && "base64" in value) return <span class="faint">{format.bytes(Math.floor(value.base64.length * 0.75))} blob</span>;
  if (typeof value === "string") return <>{value.length > 300 ? `${value.slice(0, 300)}…` : value}</>;
  return <>{String(value)}</>;
}

const isNumber = (value) => typeof value === "number" || typeof value === "bigint";

export function Grid({ columns, rows, onCell, tools }) {
  const side = (k) => (isNumber(rows.find((row) => row[k] !== null)?.[k]) ? "right" : "");
  return (
    <div class="table-box grid">
      <table>
        <thead><tr>{columns.map((name, i) => <th key={i} scope="col" class={side(i)}>{name}</th>)}{tools && <th />}</tr></thead>
        <tbody>{rows.map((row, i) => (
          <tr key={i} data-row tabIndex={-1}>
            {row.map((value, k) => (
              <td key={k} class={`mono ${isNumber(value) ? "right" : ""}`} title={typeof value === "string" && value.length > 40 ? value.slice(0, 2000) : undefined}>
                {onCell ? <button type="button" class="cell" onClick={() => onCell(i, k)}><Value value={value} /></button> : <Value value={value} />}
              </td>))}
            {tools && <td class="right">{tools(i)}</td>}
          </tr>))}
        </tbody>
      </table>
    </div>
  );
}

const SHOWN = 500;
function Result({ result }) {
  const { columns, rows, rowsRead, rowsWritten } = result;
  return (
    <section class="result">
      <p class="hint">{columns.length ? format.counted(rows.length, "row") : "done"} · {format.count(rowsRead)} read · {format.count(rowsWritten)} written{rows.length > SHOWN && ` · the first ${SHOWN} are shown`}</p>
      {columns.length > 0 && (rows.length ? <Grid columns={columns} rows={rows.slice(0, SHOWN)} /> : <Empty title="No rows" />)}
    </section>
  );
}

/**
 * `run(sql, {readonly})` resolves with {results: [{columns, rows, rowsRead, rowsWritten}], truncated}. `initial` is there until somebody
 * types; `given`, {text}, takes the place of what is there each time it is another one. Nothing else does (I1 of parts.jsx).
 */
export function Console({ run, initial = "", given, hint, guarded = true }) {
  const [typed, setText] = useState();
  const text = typed ?? initial;
  const [writing, setWriting] = useState(!guarded);
  const [answer, setAnswer] = useState({});
  const past = useRef([]);
  const alive = useRef(true);
  useEffect(() => () => { alive.current = false; }, []);
  useLayoutEffect(() => { if (given) setText(given.text); }, [given]);
  const execute = async () => {
    if (!text.trim() || answer.busy) return;
    setAnswer((answer) => ({ ...answer, busy: true }));
    const started = performance.now();
    let next;
    try { next = await run(text, { readonly: !writing }); } catch (error) { next = { error }; }
    if (past.current[0] !== text) past.current = [text, ...past.current].slice(0, 50);
    if (alive.current) setAnswer({ ...next, milliseconds: performance.now() - started });
  };
  const onKey = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); execute(); }
    if (event.key === "ArrowUp" && event.altKey) {
      const at = past.current.indexOf(text);
      if (past.current[at + 1] !== undefined) setText(past.current[at + 1]);
    }
  };
  return (
    <div class="console">
      <textarea class="code" data-search rows={5} spellcheck={false} autocapitalize="off" aria-label="SQL" placeholder={hint ?? "SELECT …"} value={text} onInput={(event) => setText(event.target.value)} onKeyDown={onKey} />
      <div class="tools">
        <Button kind="primary" disabled={answer.busy || !text.trim()} onClick={execute}>Run</Button>
        <span class="hint wide-only"><kbd>Ctrl</kbd> <kbd>Enter</kbd> runs · <kbd>Alt</kbd> <kbd>↑</kbd> the one before</span>
        {guarded && <label class="toggle push"><input type="checkbox" checked={writing} onChange={(event) => setWriting(event.target.checked)} />Allow writes</label>}
        {answer.milliseconds !== undefined && <span class={`hint ${guarded ? "" : "push"}`} data-took>{format.digits(answer.milliseconds)} ms</span>}
        {answer.truncated && <Badge kind="warn">cut off</Badge>}
      </div>
      {answer.error && <Trouble error={answer.error} />}
      {answer.results?.map((result, i) => <Result key={i} result={result} />)}
    </div>
  );
}
