// Queues: backlog, a look at the messages, pause, purge, and dead letters sent again.
import { useState } from "preact/hooks";
import { get, patch, path, post, query } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad, usePages } from "../lib/load.js";
import { href } from "../lib/router.js";
import { bindingsColumn, Choose } from "../ui/choose.jsx";
import { Badge, Button, confirm, dialog, Empty, Facts, Head, Loaded, PagedTable, Time, toast } from "../ui/parts.jsx";

const bodyOf = ({ body }) => (typeof body === "string" ? body : JSON.stringify(body, null, 2));
const Delivery = ({ paused }) => (paused ? <Badge kind="warn">paused</Badge> : <Badge kind="good">on</Badge>);

function Message({ message, close }) {
  return (
    <div class="dialog-body">
      <h2>Message</h2>
      <Facts items={[["Id", <span class="mono">{message.id}</span>], ["Sent", <Time ms={message.timestamp} exact />], ["Due", message.due ? <Time ms={message.due} /> : "now"],
        ["Attempts", format.count(message.attempts)], ["Type", message.contentType], ["Size", format.bytes(message.bytes)]]} />
      <pre class="preview mono">{bodyOf(message)}</pre>
      <div class="actions"><Button onClick={() => close()}>Close</Button></div>
    </div>
  );
}

function SendForm({ close }) {
  const [error, setError] = useState();
  const submit = (event) => {
    event.preventDefault();
    const { type, body } = event.target.elements;
    if (type.value === "text") { close({ body: body.value, content_type: "text" }); return; }
    try { close({ body: JSON.parse(body.value), content_type: "json" }); } catch (error) { setError(error.message); }
  };
  return (
    <form class="dialog-body" onSubmit={submit}>
      <h2>Send a message</h2>
      <label class="field">Type<select name="type"><option value="json">JSON</option><option value="text">Text</option></select></label>
      <label class="field">Body<textarea class="code" name="body" rows={8} required spellcheck={false} data-focus /></label>
      {error && <p class="wrong" role="alert">{error}</p>}
      <div class="actions"><Button onClick={() => close()}>Cancel</Button><button type="submit" class="button primary">Send</button></div>
    </form>
  );
}

/** Asks where the messages go: to a queue whose dead letters come here, or any other. */
function RedriveForm({ queue, queues, close }) {
  const sources = queue.deadLettersOf, others = queues.map(({ name }) => name).filter((name) => name !== queue.name && !sources.includes(name));
  return (
    <form class="dialog-body" onSubmit={(event) => { event.preventDefault(); close(event.target.elements.to.value); }}>
      <h2>Send these messages again?</h2>
      <p class="text">{format.counted(queue.backlog, "message")} for another queue: there as new, and gone here.</p>
      <label class="field">To<select name="to" data-focus>{[...sources, ...others].map((name) => <option key={name} value={name}>{name}{sources.includes(name) ? ", where they come from" : ""}</option>)}</select></label>
      <div class="actions"><Button onClick={() => close()}>Cancel</Button><button type="submit" class="button primary">Redrive</button></div>
    </form>
  );
}

function Queue({ name }) {
  const base = path`/api/queues/${name}`;
  const all = useLoad((signal) => get("/api/queues", { signal }).then(({ queues }) => queues), [], { every: 3000 });
  const queue = all.data?.find((each) => each.name === name);
  const pages = usePages(async (cursor, signal) => {
    const { messages, cursor: next } = await get(`${base}/messages${query({ cursor, limit: 100 })}`, { signal });
    return { items: messages, cursor: next };
  }, [name, queue?.backlog]);
  const again = () => { all.reload(); pages.reload(); };
  const pause = async () => {
    await patch(base, { settings: { delivery_paused: !queue.paused } });
    toast(queue.paused ? "messages are delivered again" : "delivery is paused");
    all.reload();
  };
  const purge = async () => {
    if (!(await confirm({ title: "Purge this queue?", text: `${format.counted(queue.backlog, "message")}: all go, also those that are being worked on. This cannot be undone.`, action: "Purge", type: name }))) return;
    await post(`${base}/purge`);
    toast("purged");
    again();
  };
  const redrive = async () => {
    const to = await dialog((close) => <RedriveForm queue={queue} queues={all.data} close={close} />);
    if (!to) return;
    const { moved } = await post(`${base}/redrive`, { to });
    toast(`sent again: ${format.counted(moved, "message")}`);
    again();
  };
  const send = async () => {
    const message = await dialog((close) => <SendForm close={close} />);
    if (!message) return;
    await post(`${base}/messages`, message);
    toast("sent");
    again();
  };
  return (
    <>
      <Head title={name} up={["Queues", href(["queues"])]} note={queue?.deadLettersOf.length ? `dead letters of ${queue.deadLettersOf.join(", ")}` : undefined}>
        <Button onClick={send}>Send</Button>
        <Button onClick={pause} disabled={!queue}>{queue?.paused ? "Resume" : "Pause"}</Button>
        <Button onClick={redrive} disabled={!queue || all.data.length < 2}>Redrive</Button>
        <Button kind="warn" onClick={purge} disabled={!queue}>Purge</Button>
      </Head>
      <Loaded of={all} rows={2}>{() => (queue ? (
        <div class="card"><Facts items={[
          ["Delivery", <Delivery paused={queue.paused} />],
          ["Backlog", format.counted(queue.backlog, "message")], ["Size", format.bytes(queue.bytes)], ["Oldest", <Time ms={queue.oldest} />],
          ["Being worked on", format.count(queue.leased)], ["Dropped", format.count(queue.dropped)], ["Kept for", `${format.digits(queue.retentionSeconds / 86400)} days`],
          queue.consumers.length > 0 && ["Consumer", queue.consumers.map(({ worker, type }) => (type === "worker" ? worker : "pulled over HTTP")).join(", ")],
          queue.deadLetterQueue && ["Dead letters go to", <a href={href(["queues", queue.deadLetterQueue])}>{queue.deadLetterQueue}</a>]]} /></div>)
        : <Empty title="This queue is not there" />)}
      </Loaded>
      <PagedTable pages={pages} rowKey={({ id }) => id} onOpen={(message) => dialog((close) => <Message message={message} close={close} />, { wide: true })} columns={[
        { title: "Message", mono: true, wide: true, cell: (message) => (typeof message.body === "string" ? message.body : JSON.stringify(message.body)).slice(0, 200) },
        { title: "Type", minor: true, cell: ({ contentType }) => <span class="soft">{contentType}</span> },
        { title: "Attempts", right: true, cell: ({ attempts }) => attempts },
        { title: "Due", right: true, minor: true, cell: ({ due }) => (due ? <Time ms={due} /> : "now") },
        { title: "Sent", right: true, cell: ({ timestamp }) => <Time ms={timestamp} /> }]}
        empty={<Empty title="No messages">Nothing waits here.</Empty>} />
    </>
  );
}

export function Queues({ route }) {
  const name = route.path[1];
  if (name) return <Queue key={name} name={name} />;
  return <Choose view="queues" title="Queues" target="/api/queues" items={({ queues }) => queues} idOf={({ name }) => name}
    columns={[{ title: "Queue", wide: true, cell: ({ name }) => name }, bindingsColumn,
      { title: "Delivery", cell: ({ paused }) => <Delivery paused={paused} /> },
      { title: "Backlog", right: true, cell: ({ backlog }) => format.count(backlog) },
      { title: "Dead letters to", minor: true, cell: ({ deadLetterQueue }) => <span class="soft">{deadLetterQueue ?? "–"}</span> },
      { title: "Oldest", right: true, cell: ({ oldest }) => <Time ms={oldest} /> }]}
    empty={<Empty title="No queues">A project's [[queues.producers]] and consumers are listed here.</Empty>} />;
}
