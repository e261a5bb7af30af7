// The key-value pairs of an object's storage.
import { useState } from "preact/hooks";
import { del, get, keyPath, put, query } from "../lib/api.js";
import * as format from "../lib/format.js";
import { usePages, useSettled } from "../lib/load.js";
import { Button, confirm, dialog, Empty, PagedTable, Search, toast } from "../ui/parts.jsx";

function PairForm({ pair, save, remove, close }) {
  const [error, setError] = useState();
  const [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    const { key, value } = event.target.elements;
    try {
      const parsed = JSON.parse(value.value);
      setBusy(true);
      await save(key.value, parsed);
      close(true);
    } catch (error) { setError(error.message); setBusy(false); }
  };
  return (
    <form class="dialog-body" onSubmit={submit}>
      <h2>{pair ? pair.key : "New pair"}</h2>
      <label class="field" hidden={Boolean(pair)}>Key<input name="key" class="mono" required spellcheck={false} defaultValue={pair?.key} data-focus={!pair || undefined} /></label>
      <label class="field">Value, as JSON
        <textarea class="code" name="value" rows={12} spellcheck={false} data-focus={pair ? true : undefined} defaultValue={pair ? JSON.stringify(pair.value, null, 2) : ""} />
      </label>
      <p class="hint">What JSON has not is written with a <code>$</code>: <code>{'{"$date":0}'}</code>, <code>{'{"$bytes":"AQI="}'}</code>, <code>{'{"$bigint":"5"}'}</code>.</p>
      {error && <p class="wrong" role="alert">{error}</p>}
      <div class="actions">
        {pair && <Button kind="warn" onClick={() => remove(pair, close)}>Delete</Button>}
        <Button onClick={() => close()}>Cancel</Button>
        <button type="submit" class="button primary" disabled={busy}>Save</button>
      </div>
    </form>
  );
}

export function Pairs({ base, reload }) {
  const [text, setText] = useState("");
  const prefix = useSettled(text);
  const pages = usePages(async (cursor, signal) => {
    const { entries, cursor: next } = await get(`${base}/kv${query({ prefix, cursor, limit: 100 })}`, { signal });
    return { items: entries, cursor: next };
  }, [base, prefix]);
  const again = () => { pages.reload(); reload(); };
  const save = async (key, value) => { await put(keyPath(`${base}/kv`, key), value); toast("saved"); again(); };
  const remove = async ({ key }) => {
    if (!(await confirm({ title: "Delete this pair?", text: <>The key <code>{key}</code> and its value go.</>, action: "Delete" }))) return;
    await del(keyPath(`${base}/kv`, key));
    toast("deleted");
    again();
  };
  const open = (pair) => dialog((close) => <PairForm pair={pair} save={save} remove={(pair) => remove(pair).catch((error) => toast(error.message, "bad"))} close={close} />, { wide: true });
  return (
    <>
      <div class="tools">
        <Search value={text} onInput={setText} placeholder="Beginning of a key" />
        <Button onClick={() => { open(); }}>New pair</Button>
      </div>
      <PagedTable pages={pages} rowKey={({ key }) => key} onOpen={open} columns={[
        { title: "Key", mono: true, cell: ({ key }) => key },
        { title: "Value", mono: true, wide: true, cell: ({ value }) => <span class="soft">{JSON.stringify(value).slice(0, 200)}</span> },
        { title: "Size", right: true, cell: ({ bytes }) => format.bytes(bytes) }]}
        empty={prefix ? <Empty title="Nothing found">No key begins with “{prefix}”.</Empty> : <Empty title="No pairs">Nothing is kept with ctx.storage.put() or ctx.storage.kv.</Empty>} />
    </>
  );
}
