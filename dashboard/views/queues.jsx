// Queues: backlog, a look at the messages, pause, purge, and dead letters sent again.
import { useState } from "preact/hooks";
import { get, patch, path, post, query } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad, usePages } from "../lib/load.js";
import { href } from "../lib/router.js";
import { bindingsColumn, Choose } from "../ui/choose.jsx";
import { Badge, Button, confirm, dialog, Empty, Facts, Head, Loaded, PagedTable, Time, toast } from "../ui/parts.jsx";

const unwrap = (answer) => answer.result ?? answer;
const typeOf = (message) => message.content_type ?? message.metadata?.["CF-Content-Type"];
const bodyOf = (message) => (typeof message.body === "string" ? message.body : JSON.stringify(message.body, null, 2));

function Message({ message, close }) {
  return (
    <div class="dialog-body">
      <h2>Message</h2>
      <Facts items={[["Id", <span class="mono">{message.id}</span>], ["Sent", <Time ms={message.timestamp_ms} exact />], ["Attempts", format.count(message.attempts)], ["Type", typeOf(message)]]} />
      <pre class="preview mono">{bodyOf(message)}</pre>
      <div class="actions"><Button onClick={() => close()}>Close</Button></div>
    </div>
  );
}

function SendForm({ close }) {
  const [error, setError] = useState();
  const submit = (event) => {
    event.preventDefault();
    const text = event.target.elements.body.value;
    if (event.target.elements.type.value === "text") { close({ body: text, content_type: "text" }); return; }
    try { close({ body: JSON.parse(text), content_type: "json" }); } catch (error) { setError(error.message); }
  };
  return (
    <form class="dialog-body" onSubmit={submit}>
      <h2>Send a message</h2>
      <label class="field">Type<select name="type"><option value="json">JSON</option><option value="text">Text</option></select></label>
      <label class="field">Body<textarea class="code" name="body" rows={8} required spellcheck={false} autofocus /></label>
      {error && <p class="wrong" role="alert">{error}</p>}
      <div class="actions"><Button onClick={() => close()}>Cancel</Button><button type="submit" class="button primary">Send</button></div>
    </form>
  );
}

function Queue({ name }) {
  const base = path`/api/queues/${name}`;
  const about = useLoad((signal) => get(base, { signal }).then(unwrap), [name], { every: 3000 });
  const pages = usePages(async (cursor, signal) => {
    const answer = unwrap(await get(`${base}/messages${query({ cursor, limit: 100 })}`, { signal }));
    return { items: answer.messages, cursor: answer.cursor };
  }, [name]);
  const again = () => { about.reload(); pages.reload(); };
  const paused = about.data?.settings?.delivery_paused;
  const pause = async () => { await patch(base, { settings: { delivery_paused: !paused } }); toast(paused ? "messages are delivered again" : "delivery is paused"); about.reload(); };
  const purge = async () => {
    if (!(await confirm({ title: "Purge this queue?", text: `All ${format.count(about.data.backlog_count)} messages go, also those that are being worked on. This cannot be undone.`, action: "Purge", type: name }))) return;
    await post(`${base}/purge`);
    toast("purged");
    again();
  };
  const redrive = async () => {
    if (!(await confirm({ title: "Send these messages again?", text: "Each goes back to the queue it came from when it was given up, and leaves this one.", action: "Redrive" }))) return;
    const answer = unwrap(await post(`${base}/redrive`));
    const count = answer.moved ?? answer.redriven ?? answer.count;
    toast(count === undefined ? "sent again" : `${format.count(count)} messages are sent again`);
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
      <Head title={name} up={["Queues", href(["queues"])]}>
        <Button onClick={send}>Send</Button>
        <Button onClick={pause} disabled={!about.data}>{paused ? "Resume" : "Pause"}</Button>
        <Button onClick={redrive}>Redrive</Button>
        <Button kind="warn" onClick={purge} disabled={!about.data}>Purge</Button>
      </Head>
      <Loaded of={about} rows={2}>{(data) => (
        <div class="card"><Facts items={[
          ["Delivery", paused ? <Badge kind="warn">paused</Badge> : <Badge kind="good">on</Badge>],
          ["Backlog", `${format.count(data.backlog_count)} messages`], ["Size", format.bytes(data.backlog_bytes)],
          ["Oldest", data.oldest_message_timestamp_ms ? <Time ms={data.oldest_message_timestamp_ms} /> : "–"],
          ["Being worked on", format.count(data.leased_count)], ["Dropped", format.count(data.dropped_count)],
          ["Kept for", data.settings ? `${format.digits(data.settings.message_retention_period / 86400)} days` : "–"]]} /></div>)}
      </Loaded>
      <PagedTable pages={pages} rowKey={({ id }) => id} onOpen={(message) => dialog((close) => <Message message={message} close={close} />, { wide: true })} columns={[
        { title: "Message", mono: true, wide: true, cell: (message) => bodyOf(message).slice(0, 200) },
        { title: "Type", minor: true, cell: (message) => <span class="soft">{typeOf(message)}</span> },
        { title: "Attempts", right: true, cell: ({ attempts }) => attempts },
        { title: "Sent", right: true, cell: ({ timestamp_ms }) => <Time ms={timestamp_ms} /> },
        { title: "Id", minor: true, mono: true, cell: ({ id }) => <span class="faint">{format.brief(id, 8)}</span> }]}
        empty={<Empty title="No messages">What is sent is delivered at once, or nothing is sent.</Empty>} />
    </>
  );
}

export function Queues({ route }) {
  const name = route.path[1];
  if (name) return <Queue key={name} name={name} />;
  const nameOf = (queue) => queue.name ?? queue.queue_name;
  return <Choose view="queues" title="Queues" target="/api/queues" items={(answer) => unwrap(answer).queues} idOf={nameOf}
    columns={[{ title: "Queue", wide: true, cell: nameOf }, bindingsColumn,
      { title: "Delivery", cell: (queue) => ((queue.paused ?? queue.settings?.delivery_paused) ? <Badge kind="warn">paused</Badge> : <Badge kind="good">on</Badge>) },
      { title: "Backlog", right: true, cell: (queue) => format.count(queue.backlog_count) },
      { title: "Oldest", right: true, cell: (queue) => <Time ms={queue.oldest_message_timestamp_ms || null} /> }]}
    empty={<Empty title="No queues">A project's [[queues.producers]] and consumers are listed here.</Empty>} />;
}
