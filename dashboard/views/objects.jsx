// Objects: found by class, name or id, sorted by size, last change or alarm.
import { useEffect, useState } from "preact/hooks";
import { get, query } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad, usePages, useSettled } from "../lib/load.js";
import { go, href } from "../lib/router.js";
import { Badge, Button, Empty, Head, Icon, PagedTable, Search, Select, Time, Toggle, Trouble } from "../ui/parts.jsx";

const PAGE = 50;
const CLASSES_MAX = 40; // that are asked together
const mayBeId = (text) => /^[0-9a-f]{4,64}$/i.test(text);
const isService = (name) => name.startsWith("$");

/** The classes that have objects, `worker/Class`: those of the last time at once, and then those of now. */
let known;
function useNamespaces() {
  const loaded = useLoad(async (signal) => {
    const { namespaces } = await get("/api/namespaces", { signal });
    const names = namespaces.map(({ name }) => name);
    return (known = String(names) === String(known) ? known : names);
  }, []);
  return { ...loaded, data: loaded.data ?? known };
}

/** One page of objects of a class, in the order that is asked for. */
async function list(namespace, { q, sort, desc }, cursor, signal) {
  // The beginning of a name is found in the order of names only, that of an id in theirs.
  const ask = (order) => get(`/api/objects${query({ namespace, ...order, limit: PAGE })}`, { signal });
  const [{ objects, cursor: next }, ids] = await Promise.all([
    ask({ ...(q ? { prefix: q } : { sort, desc: desc ? "1" : "" }), cursor }), !cursor && mayBeId(q) ? ask({ id: q }) : { objects: [] }]);
  return { items: [...ids.objects, ...objects], cursor: next };
}

/** The first page of each class, merged: the first of all are among them. */
async function listAll(namespaces, options, signal) {
  const asked = namespaces.slice(0, CLASSES_MAX);
  const pages = await Promise.all(asked.map((namespace) => list(namespace, options, undefined, signal)));
  const value = { size: ({ size }) => size, changed: ({ changed }) => changed, alarm: ({ alarm }) => alarm, name: ({ name }) => name ?? "", id: ({ id }) => id }[options.q ? "name" : options.sort];
  const sign = options.desc && !options.q && ["size", "changed"].includes(options.sort) ? -1 : 1;
  const items = pages.flatMap(({ items }) => items).sort((a, b) => (value(a) < value(b) ? -sign : value(a) > value(b) ? sign : 0));
  return { items: items.slice(0, PAGE), cursor: null, cut: items.length > PAGE || asked.length < namespaces.length || pages.some(({ cursor }) => cursor) };
}

/** How many there are: every entry is read for it, so it is asked for. */
function Count({ ns, services }) {
  const [counted, setCounted] = useState();
  useEffect(() => setCounted(undefined), [ns, services]);
  if (counted) return <span class="note">{format.counted(counted.objects, "object")}, {format.bytes(counted.bytes)}</span>;
  const count = async () => {
    const { namespaces } = await get("/api/namespaces?count=1");
    const chosen = namespaces.filter(({ name }) => (ns ? name === ns : services || !isService(name)));
    const sum = (key) => chosen.reduce((total, each) => total + each[key], 0);
    setCounted({ objects: sum("objects"), bytes: sum("bytes") });
  };
  return <Button onClick={count}>Count</Button>;
}

export function Objects({ route }) {
  const { ns = "", q = "", sort = "changed", desc = sort === "changed" || sort === "size" ? "1" : "", services = "" } = route.query;
  const [text, setText] = useState(q);
  const settled = useSettled(text);
  const namespaces = useNamespaces();
  const change = (values, options) => go(["objects"], { ns, q, sort, desc, services, ...values }, options);
  useEffect(() => { if (settled !== q) change({ q: settled }, { replace: true }); }, [settled]);

  const names = (namespaces.data ?? []).filter((name) => services || !isService(name));
  const pages = usePages(async (cursor, signal) => {
    if (!namespaces.data) return { items: [], waiting: true };
    const options = { q: q.trim(), sort, desc };
    if (ns) return list(ns, options, cursor, signal);
    return listAll(names, options, signal);
  }, [ns, q, sort, desc, services, namespaces.data]);

  if (namespaces.error) return <><Head title="Objects" /><Trouble error={namespaces.error} retry={namespaces.reload} /></>;
  const searching = Boolean(q.trim());
  const onOrder = (by) => change({ sort: by, desc: by === sort ? (desc ? "" : "1") : by === "size" || by === "changed" ? "1" : "" });
  const columns = [
    { title: "Name", sort: "name", wide: true, cell: ({ name, id }) => (name ? <span class="name">{name}</span> : <span class="mono faint">{format.brief(id, 16)}</span>) },
    !ns && { title: "Class", minor: true, cell: ({ namespace }) => <span class="class">{namespace}</span> },
    { title: "Id", sort: "id", mono: true, minor: true, cell: ({ id }) => <span class="faint">{format.brief(id)}</span> },
    pages.items?.some(({ node }) => node) && { title: "Node", minor: true, cell: ({ node }) => node },
    { title: "Size", sort: "size", right: true, cell: ({ size }) => format.bytes(size) },
    { title: "Last change", sort: "changed", right: true, cell: ({ changed }) => <Time ms={changed} /> },
    { title: "Alarm", sort: "alarm", right: true, cell: ({ alarm }) => (alarm === null ? <span class="faint">–</span> : <Badge kind={alarm < Date.now() ? "warn" : ""}><Time ms={alarm} /></Badge>) },
  ].filter(Boolean);
  const empty = searching
    ? <Empty title="Nothing found">No object {ns ? `of ${ns} ` : ""}has a name{mayBeId(q.trim()) ? " or id" : ""} that begins with “{q.trim()}”.</Empty>
    : sort === "alarm" ? <Empty title="No alarms">No object {ns ? `of ${ns} ` : ""}has an alarm set.</Empty>
    : <Empty title="No objects yet">An object is listed here from its first write on.</Empty>;
  return (
    <>
      <Head title="Objects" note={ns || undefined}>
        <Count ns={ns} services={services} />
        <Button title="Load again (r)" onClick={() => pages.reload()}><Icon name="reload" /></Button>
      </Head>
      <div class="tools">
        <Search value={text} onInput={setText} placeholder="Beginning of a name or an id" />
        <Select label="Class" value={ns} onChange={(ns) => change({ ns })} options={[["", "All classes"], ...names.map((name) => [name, name]), ...(ns && !names.includes(ns) ? [[ns, ns]] : [])]} />
        <Toggle checked={Boolean(services)} onChange={(on) => change({ services: on ? "1" : "", ns: on || !isService(ns) ? ns : "" })}>Services</Toggle>
      </div>
      <PagedTable pages={pages.waiting ? { ...pages, loading: true } : pages} columns={columns} empty={empty} rowKey={({ namespace, id }) => namespace + id}
        link={({ namespace, id }) => href(["object", namespace, id])} order={searching ? { by: "name" } : { by: sort, desc: Boolean(desc) }} onOrder={searching ? undefined : onOrder} />
      {pages.cut && <p class="hint center">{searching || names.length <= CLASSES_MAX ? `These are the first of all classes.` : `These are of the first ${CLASSES_MAX} of ${names.length} classes.`} Choose a class to see more.</p>}
    </>
  );
}
