// The tables of an object: rows, one cell or row at a time changed.
import { useState } from "preact/hooks";
import { sql } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { Button, confirm, dialog, Empty, Loaded, Select, toast } from "../ui/parts.jsx";
import { Grid, quote } from "../ui/sql.jsx";

const PAGE = 100;
const kinds = [["text", "Text"], ["number", "Number"], ["null", "NULL"]];
const kindOf = (value) => (value === null ? "null" : typeof value === "number" || typeof value === "bigint" ? "number" : "text");

function toNumber(text) {
  if (/^-?\d+$/.test(text.trim())) { const value = BigInt(text); return value === BigInt(Number(value)) ? Number(value) : value; }
  const value = Number(text);
  if (!text.trim() || Number.isNaN(value)) throw new Error("that is no number");
  return value;
}

/** Asks for a value: {value}, or undefined. */
function CellForm({ title, value, close }) {
  const [kind, setKind] = useState(kindOf(value));
  const [error, setError] = useState();
  const save = (event) => {
    event.preventDefault();
    const text = event.target.elements.text?.value;
    try { close({ value: kind === "null" ? null : kind === "number" ? toNumber(text) : text }); } catch (error) { setError(error.message); }
  };
  return (
    <form class="dialog-body" onSubmit={save}>
      <h2>{title}</h2>
      <Select label="Type" value={kind} onChange={setKind} options={kinds} />
      {kind !== "null" && <textarea class="code" name="text" data-focus rows={kind === "text" ? 8 : 1} spellcheck={false} defaultValue={value === null ? "" : String(value)} />}
      {error && <p class="wrong">{error}</p>}
      <div class="actions"><Button onClick={() => close()}>Cancel</Button><button type="submit" class="button primary">Save</button></div>
    </form>
  );
}

export function Rows({ base, object, table: wanted, reload }) {
  const [chosen, setChosen] = useState(wanted);
  const [offset, setOffset] = useState(0);
  const current = object.tables.find(({ name }) => name === chosen) ?? object.tables.find(({ rows }) => rows > 0) ?? object.tables[0];
  const name = current?.name;
  const rows = useLoad(async () => {
    if (!name) return undefined;
    const read = (columns) => sql(`${base}/sql`, `SELECT ${columns} FROM ${quote(name)} LIMIT ${PAGE} OFFSET ${offset}`, { readonly: true });
    if (!/\)\s*[^)]*\bwithout\s+rowid\b[^)]*$/i.test(current.sql)) {
      const { results: [result] } = await read("rowid, *");
      return { columns: result.columns.slice(1), rows: result.rows.map((row) => row.slice(1)), ids: result.rows.map(([id]) => id) };
    }
    const { results: [result] } = await read("*"); // is shown here, and changed in the console
    return { ...result, ids: null };
  }, [base, name, offset, current?.rows]);
  if (!current) return <Empty title="No tables">This object keeps nothing in SQL. Its key-value pairs are under Storage.</Empty>;
  const again = () => { rows.reload(); reload(); };
  const change = async (i, k) => {
    const { columns, rows: list, ids } = rows.data;
    const value = list[i][k];
    if (value !== null && typeof value === "object") { toast("a blob can be changed in the console only", "bad"); return; }
    const answer = await dialog((close) => <CellForm title={`${name}.${columns[k]}`} value={value} close={close} />);
    if (!answer) return;
    try {
      await sql(`${base}/sql`, `UPDATE ${quote(name)} SET ${quote(columns[k])} = ? WHERE rowid = ?`, { params: [answer.value, ids[i]] });
      toast("saved");
      again();
    } catch (error) { toast(error.message, "bad"); }
  };
  const remove = async (i) => {
    if (!(await confirm({ title: "Delete this row?", text: `The row ${rows.data.ids[i]} of ${name} goes.`, action: "Delete" }))) return;
    await sql(`${base}/sql`, `DELETE FROM ${quote(name)} WHERE rowid = ?`, { params: [rows.data.ids[i]] });
    toast("deleted");
    again();
  };
  const last = Math.min(offset + PAGE, current.rows);
  return (
    <>
      <div class="tools">
        <Select label="Table" value={name} onChange={(name) => { setChosen(name); setOffset(0); }} options={object.tables.map(({ name, rows }) => [name, `${name} (${format.count(rows)})`])} />
        <span class="hint">{current.rows ? `${format.count(offset + 1)}–${format.count(last)} of ${format.count(current.rows)} rows` : "no rows"}</span>
        <span class="push" />
        <Button disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - PAGE))}>Before</Button>
        <Button disabled={last >= current.rows} onClick={() => setOffset(offset + PAGE)}>Next</Button>
      </div>
      <Loaded of={rows}>{(data) => (data === undefined || !data.rows.length ? <Empty title="No rows" />
        : <Grid columns={data.columns} rows={data.rows} onCell={data.ids && change} tools={data.ids && ((i) => <Button kind="small plain" title="Delete the row" onClick={() => remove(i)}>Delete</Button>)} />)}
      </Loaded>
      <details class="card"><summary>Schema</summary><pre class="mono">{current.sql}</pre></details>
    </>
  );
}
