// R2 buckets: folders and objects, up and down.
import { useRef, useState } from "preact/hooks";
import { del, download, get, keyPath, path, query, send } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad, usePages, useSettled } from "../lib/load.js";
import { go, href } from "../lib/router.js";
import { bindingsColumn, Choose, sizeColumn } from "../ui/choose.jsx";
import { Button, confirm, dialog, Empty, Facts, Head, PagedTable, Search, Time, toast } from "../ui/parts.jsx";

const PREVIEW_MAX = 2 << 20;

/** The beginning of an object, if it is a picture or text. */
function Preview({ target, type, size }) {
  const shown = useLoad(async () => {
    if (size > PREVIEW_MAX) return {};
    const blob = await (await send("GET", target)).blob();
    if (/^image\/(png|jpeg|gif|webp|avif|svg\+xml)/.test(type)) return { url: URL.createObjectURL(blob) };
    try { return { text: new TextDecoder("utf-8", { fatal: true }).decode(await blob.arrayBuffer()).slice(0, 20_000) }; } catch { return {}; }
  }, [target]);
  if (shown.error) return <p class="wrong">{shown.error.message}</p>;
  if (shown.data?.url) return <img class="preview" src={shown.data.url} alt="" />;
  if (shown.data?.text !== undefined) return <pre class="preview mono">{shown.data.text || "(empty)"}</pre>;
  return <p class="hint">{shown.data ? "No preview of this type or size." : "Loading…"}</p>;
}

function About({ base, object, close }) {
  const target = keyPath(`${base}/objects`, object.key);
  const type = object.http?.contentType ?? "application/octet-stream";
  return (
    <div class="dialog-body">
      <h2>{object.key}</h2>
      <Facts items={[["Size", format.bytes(object.size)], ["Type", type], ["Uploaded", <Time ms={object.uploaded} exact />], ["ETag", <span class="mono">{object.etag}</span>],
        ...Object.entries(object.custom ?? {}).map(([name, value]) => [name, value])]} />
      <Preview target={target} type={type} size={object.size} />
      <div class="actions">
        <Button kind="warn" onClick={() => close({ remove: object.key })}>Delete</Button>
        <Button onClick={() => download(target, object.key.split("/").pop())}>Download</Button>
        <Button onClick={() => close()}>Close</Button>
      </div>
    </div>
  );
}

function Bucket({ name, prefix }) {
  const base = path`/api/r2/${name}`;
  const [text, setText] = useState("");
  const search = useSettled(text);
  const file = useRef();
  const about = useLoad((signal) => get(base, { signal }), [name]);
  const pages = usePages(async (cursor, signal) => {
    const answer = await get(`${base}/objects${query({ prefix: prefix + search, delimiter: "/", cursor, limit: 100 })}`, { signal });
    return { items: [...(answer.prefixes ?? []).map((folder) => ({ folder })), ...answer.objects], cursor: answer.cursor };
  }, [name, prefix, search]);
  const open = async (object) => {
    if (object.folder) { setText(""); go(["r2", name], { prefix: object.folder }); return; }
    const answer = await dialog((close) => <About base={base} object={object} close={close} />, { wide: true });
    if (!answer?.remove) return;
    if (!(await confirm({ title: "Delete this object?", text: <><code>{answer.remove}</code> goes. Its content cannot be brought back.</>, action: "Delete" }))) return;
    try { await del(keyPath(`${base}/objects`, answer.remove)); toast("deleted"); pages.reload(); about.reload(); } catch (error) { toast(error.message, "bad"); }
  };
  const upload = async (event) => {
    const list = [...event.target.files];
    event.target.value = "";
    try {
      for (const each of list) await send("PUT", keyPath(`${base}/objects`, prefix + each.name), { body: each, headers: { "content-type": each.type || "application/octet-stream" } });
      toast(list.length === 1 ? `${list[0].name} is uploaded` : `${list.length} files are uploaded`);
    } catch (error) { toast(error.message, "bad"); }
    pages.reload();
    about.reload();
  };
  const folders = prefix.split("/").filter(Boolean);
  return (
    <>
      <Head title={name} up={["R2", href(["r2"])]} note={about.data ? `${format.counted(about.data.objects, "object")}, ${format.bytes(about.data.bytes)}` : undefined}>
        <input type="file" multiple hidden ref={file} onChange={upload} />
        <Button onClick={() => file.current.click()}>Upload</Button>
      </Head>
      <div class="tools">
        <Search value={text} onInput={setText} placeholder="Beginning of a name" />
        <nav class="crumbs"><a href={href(["r2", name])}>{name}</a>{folders.map((folder, i) => <a key={i} href={href(["r2", name], { prefix: `${folders.slice(0, i + 1).join("/")}/` })}>{folder}</a>)}</nav>
      </div>
      <PagedTable pages={pages} rowKey={({ folder, key }) => folder ?? key} onOpen={open} columns={[
        { title: "Key", wide: true, cell: ({ folder, key }) => (folder ? <strong>{folder.slice(prefix.length)}</strong> : key.slice(prefix.length)) },
        { title: "Type", minor: true, cell: ({ folder, http }) => <span class="soft">{folder ? "folder" : http?.contentType ?? "–"}</span> },
        { title: "Size", right: true, cell: ({ folder, size }) => (folder ? "" : format.bytes(size)) },
        { title: "Uploaded", right: true, cell: ({ folder, uploaded }) => (folder ? "" : <Time ms={uploaded} />) }]}
        empty={search ? <Empty title="Nothing found">No key begins with “{prefix + search}”.</Empty> : <Empty title="Nothing here yet" />} />
    </>
  );
}

export function R2({ route }) {
  const name = route.path[1];
  if (name) return <Bucket key={name} name={name} prefix={route.query.prefix ?? ""} />;
  return <Choose view="r2" title="R2" target="/api/r2" items={({ buckets }) => buckets} idOf={({ name }) => name}
    columns={[{ title: "Bucket", wide: true, cell: ({ name }) => name }, bindingsColumn, { title: "Objects", right: true, cell: ({ objects }) => format.count(objects) }, sizeColumn]}
    empty={<Empty title="No buckets">A project's [[r2_buckets]] are listed here.</Empty>} />;
}
