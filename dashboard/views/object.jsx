// One object: what it is, its data, its past, its log.
import { useMemo, useState } from "preact/hooks";
import { del, download, get, path, put, sql } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { go, href } from "../lib/router.js";
import { Badge, Button, confirm, Copy, dialog, Empty, Facts, Head, Loaded, Table, Tabs, Time, toast } from "../ui/parts.jsx";
import { Console, quote } from "../ui/sql.jsx";
import { passes, TailLines, TailState, useTail } from "../ui/tail.jsx";
import { History } from "./object_history.jsx";
import { Pairs } from "./object_pairs.jsx";
import { Rows } from "./object_rows.jsx";

function AlarmForm({ alarm, close }) {
  const save = (event) => {
    event.preventDefault();
    close(new Date(event.target.elements.time.value).getTime());
  };
  return (
    <form class="dialog-body" onSubmit={save}>
      <h2>Set the alarm</h2>
      <label class="field">Time<input type="datetime-local" name="time" step="1" required defaultValue={format.field(alarm ?? Date.now() + 60_000)} data-focus /></label>
      <p class="hint">A time that has passed runs alarm() at once.</p>
      <div class="actions"><Button onClick={() => close()}>Cancel</Button><button type="submit" class="button primary">Set</button></div>
    </form>
  );
}

function Alarm({ base, object, reload }) {
  const set = async () => {
    const time = await dialog((close) => <AlarmForm alarm={object.alarm} close={close} />);
    if (time === undefined) return;
    await put(`${base}/alarm`, { time });
    toast("the alarm is set");
    reload();
  };
  const clear = async () => {
    if (!(await confirm({ title: "Delete the alarm?", text: `It is set to ${format.time(object.alarm)}. alarm() will not run then.`, action: "Delete" }))) return;
    await del(`${base}/alarm`);
    toast("the alarm is deleted");
    reload();
  };
  return (
    <span class="inline">
      {object.alarm === null ? <span class="faint">none</span> : <Time ms={object.alarm} />}
      <Button kind="small" onClick={set}>{object.alarm === null ? "Set" : "Change"}</Button>
      {object.alarm !== null && <Button kind="small" onClick={clear}>Delete</Button>}
    </span>
  );
}

function Sockets({ sockets: { connections, count, hibernated } }) {
  if (!count) return <Empty title="No sockets">WebSockets that the object has accepted are listed here, also while it is not in memory.</Empty>;
  return (
    <>
      <Table rows={connections} columns={[
        { title: "Tags", wide: true, cell: ({ tags }) => (tags.length ? <span class="list">{tags.map((tag) => <Badge key={tag}>{tag}</Badge>)}</span> : <span class="faint">none</span>) },
        { title: "Kind", cell: ({ hibernatable }) => (hibernatable ? "hibernatable" : "keeps the object in memory") },
        { title: "Open", right: true, cell: ({ since }) => <Time ms={since} /> }]} />
      <p class="hint center">{count > connections.length ? `These are the oldest of ${format.count(count)}. ` : ""}{hibernated ? "The object is not in memory; the next message wakes it." : ""}</p>
    </>
  );
}

function ObjectLog({ id }) {
  const [paused, setPaused] = useState(false);
  const tail = useTail(paused);
  const lines = useMemo(() => tail.lines.filter((line) => line.object === id && passes(line, {})), [tail.lines, id]);
  return (
    <>
      <div class="tools"><TailState tail={tail} paused={paused} onPause={() => setPaused(!paused)} /></div>
      <TailLines tail={tail} lines={lines} narrow empty="What the object writes to the console is shown here from now on." />
    </>
  );
}

export function ObjectView({ route }) {
  const [, namespace, id, tab = "rows"] = route.path;
  const base = path`/api/objects/${namespace}/${id}`;
  const loaded = useLoad((signal) => get(base, { signal }), [namespace, id]);
  const object = loaded.data;
  const title = object?.name ?? (object ? format.brief(object.id, 20) : format.brief(id ?? "", 20));
  const database = /^\$d1\/(.+)$/.exec(namespace)?.[1]; // of D1: it is an object, and has its history here
  const up = database ? ["D1", href(["d1", database])] : ["Objects", href(["objects"], { ns: namespace, services: namespace?.startsWith("$") ? "1" : "" })];
  const remove = async () => {
    const sure = await confirm({
      title: "Delete this object?", text: "Its database, alarm and name go, and a live instance ends. Within the retention time its history can bring it back.", action: "Delete", type: object.name ?? object.id.slice(0, 8),
    });
    if (!sure) return;
    const { undo } = await del(base);
    toast(`deleted; the bookmark ${undo} undoes it`);
    go(["object", namespace, object.id, "history"], {}, { replace: true });
    loaded.reload();
  };
  const tabs = [
    ["rows", "Tables", object?.tables.length], ["pairs", "Storage", object && format.short(object.keys)], ["sql", "Console"],
    ["sockets", "Sockets", object && format.short(object.sockets.count)], ["history", "History"], ["log", "Log"]];
  const link = (key) => href(["object", namespace, id, key]);
  const table = object?.tables.find(({ rows }) => rows > 0) ?? object?.tables[0];
  const content = {
    rows: () => <Rows base={base} object={object} table={route.query.table} reload={loaded.reload} />,
    pairs: () => <Pairs base={base} reload={loaded.reload} />,
    sql: () => <Console run={(text, options) => sql(`${base}/sql`, text, options).then((answer) => { if (!options.readonly) loaded.reload(); return answer; })} initial={table ? `SELECT * FROM ${quote(table.name)} LIMIT 50` : ""} />,
    sockets: () => <Sockets sockets={object.sockets} />,
    history: () => <History base={base} object={object} reload={loaded.reload} />,
    log: () => <ObjectLog id={object.id} />,
  }[tab];
  // What is deleted still has its past.
  if (loaded.error?.status === 404 && /^[0-9a-f]{64}$/.test(id ?? "")) return (
    <>
      <Head title={title} up={up} note={namespace} />
      <Empty title="This object is not there">It is deleted, or was never written to. If it has a past, it can be restored.</Empty>
      <History base={base} object={{ id }} reload={loaded.reload} />
    </>
  );
  return (
    <>
      <Head title={title} up={up} note={namespace}>
        {object && <><Button onClick={() => download(`${base}/export`, `${object.name ?? object.id}.sqlite`)}>Export</Button><Button kind="warn" onClick={remove}>Delete</Button></>}
      </Head>
      <Loaded of={loaded} rows={4}>{() => (
        <>
          <div class="card"><Facts items={[
            ["State", object.live ? <Badge kind="good">in memory</Badge> : <Badge>on disk</Badge>],
            ["Size", format.bytes(object.size)],
            ["Last change", <Time ms={object.changed} />],
            ["Created", <Time ms={object.created} exact />],
            ["Alarm", <Alarm base={base} object={object} reload={loaded.reload} />],
            ["Id", <Copy text={object.id}><span class="mono">{format.brief(object.id, 24)}</span></Copy>],
            ["Bookmark", <Copy text={object.bookmark}><span class="mono">{format.brief(object.bookmark, 24)}</span></Copy>],
          ]} /></div>
          <Tabs tabs={tabs} current={tab} link={link} />
          {content ? content() : <Empty title="There is no such tab" />}
        </>
      )}</Loaded>
    </>
  );
}
