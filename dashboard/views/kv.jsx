// KV namespaces: keys, and their values.
import { useState } from "preact/hooks";
import { del, get, keyPath, path, query, save, send } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad, usePages, useSettled } from "../lib/load.js";
import { href } from "../lib/router.js";
import { bindingsColumn, Choose, idColumn, sizeColumn } from "../ui/choose.jsx";
import { Button, confirm, dialog, Empty, Head, Loading, PagedTable, Search, Time, toast, Trouble } from "../ui/parts.jsx";

const TEXT_MAX = 512 << 10; // of a value that is edited here

/** The value as text, or how many bytes it is if it is none. */
async function read(target) {
  const response = await send("GET", target);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const metadata = response.headers.get("x-cairn-metadata") ?? "";
  const expiration = Number(response.headers.get("x-cairn-expiration")) || undefined;
  try {
    if (bytes.length > TEXT_MAX) throw new Error();
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), size: bytes.length, metadata, expiration };
  } catch { return { size: bytes.length, metadata, expiration, blob: new Blob([bytes]) }; }
}

function ValueForm({ base, name, close }) {
  const value = useLoad(() => (name === undefined ? Promise.resolve({ text: "", metadata: "" }) : read(keyPath(`${base}/values`, name))), [name]);
  const [error, setError] = useState();
  const submit = async (event) => {
    event.preventDefault();
    const { key, text, metadata, expiration } = event.target.elements;
    try {
      const options = query({ metadata: metadata.value, expiration: expiration.value && Math.round(new Date(expiration.value).getTime() / 1000) });
      const target = keyPath(`${base}/values`, key.value);
      await send("PUT", target.includes("?") ? target + options.replace("?", "&") : target + options, { body: text.value });
      toast("saved");
      close("saved");
    } catch (error) { setError(error); }
  };
  const remove = async () => close({ remove: name });
  if (!value.data) return <div class="dialog-body">{value.error ? <Trouble error={value.error} /> : <Loading />}<div class="actions"><Button onClick={() => close()}>Close</Button></div></div>;
  const { text, size, metadata, expiration, blob } = value.data;
  return (
    <form class="dialog-body" onSubmit={submit}>
      <h2>{name ?? "New key"}</h2>
      <label class="field" hidden={name !== undefined}>Key<input name="key" required spellcheck={false} defaultValue={name} data-focus={name === undefined || undefined} /></label>
      {text === undefined
        ? <div class="state"><p>{format.bytes(size)} that are no text, or too many to be edited here.</p><Button onClick={() => save(blob, name)}>Download</Button></div>
        : <label class="field">Value<textarea class="code" name="text" rows={12} spellcheck={false} defaultValue={text} data-focus={name !== undefined || undefined} /></label>}
      <div class="pair">
        <label class="field">Metadata, as JSON<input name="metadata" class="mono" spellcheck={false} defaultValue={metadata} /></label>
        <label class="field">Expires<input name="expiration" type="datetime-local" step="1" defaultValue={expiration && format.field(expiration * 1000)} /></label>
      </div>
      {error && <p class="wrong" role="alert">{error.message}</p>}
      <div class="actions">
        {name !== undefined && <Button kind="warn" onClick={remove}>Delete</Button>}
        <Button onClick={() => close()}>Cancel</Button>
        {text !== undefined && <button type="submit" class="button primary">Save</button>}
      </div>
    </form>
  );
}

function Namespace({ id }) {
  const base = path`/api/kv/${id}`;
  const [text, setText] = useState("");
  const prefix = useSettled(text);
  const about = useLoad(async (signal) => (await get("/api/kv", { signal })).namespaces.find((each) => each.id === id), [id]);
  const pages = usePages(async (cursor, signal) => {
    const { keys, cursor: next } = await get(`${base}/keys${query({ prefix, cursor, limit: 100 })}`, { signal });
    return { items: keys, cursor: next };
  }, [id, prefix]);
  const open = async (name) => {
    const answer = await dialog((close) => <ValueForm base={base} name={name} close={close} />, { wide: true });
    if (answer?.remove) {
      if (!(await confirm({ title: "Delete this key?", text: <>The key <code>{answer.remove}</code> and its value go.</>, action: "Delete" }))) return;
      try { await del(keyPath(`${base}/values`, answer.remove)); toast("deleted"); } catch (error) { toast(error.message, "bad"); }
    }
    if (answer) pages.reload();
  };
  return (
    <>
      <Head title={about.data?.title ?? id} up={["KV", href(["kv"])]} note={about.data ? format.bytes(about.data.bytes) : undefined}><Button onClick={() => { open(); }}>New key</Button></Head>
      <div class="tools"><Search value={text} onInput={setText} placeholder="Beginning of a key" /></div>
      <PagedTable pages={pages} rowKey={({ name }) => name} onOpen={({ name }) => open(name)} columns={[
        { title: "Key", mono: true, wide: true, cell: ({ name }) => name },
        { title: "Metadata", mono: true, minor: true, cell: ({ metadata }) => <span class="soft">{metadata === undefined ? "–" : JSON.stringify(metadata).slice(0, 120)}</span> },
        { title: "Expires", right: true, cell: ({ expiration }) => <Time ms={expiration && expiration * 1000} /> }]}
        empty={prefix ? <Empty title="Nothing found">No key begins with “{prefix}”.</Empty> : <Empty title="No keys yet" />} />
    </>
  );
}

export function Kv({ route }) {
  const id = route.path[1];
  if (id) return <Namespace key={id} id={id} />;
  return <Choose view="kv" title="KV" target="/api/kv" items={({ namespaces }) => namespaces} idOf={({ id }) => id}
    columns={[{ title: "Namespace", wide: true, cell: ({ title }) => title }, bindingsColumn, idColumn, sizeColumn]}
    empty={<Empty title="No namespaces">A project's [[kv_namespaces]] are listed here.</Empty>} />;
}
