// Versions of the workers that were deployed by upload: which serve and with which share, what they are bound to beside those
// that serve, and who changed what. The roll-out is moved by a slider; a rollback is one to 100 %.
import { useState } from "preact/hooks";
import { get, path, post, query } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { href } from "../lib/router.js";
import { Badge, Button, confirm, Copy, Empty, Facts, Failures, Head, Loaded, Select, Table, Time, toast } from "../ui/parts.jsx";

let account; // the server has one
const scripts = async (rest, signal) => {
  account ??= (await get("/client/v4/accounts", { signal })).result[0].id;
  return `${path`/client/v4/accounts/${account}`}/workers/scripts${rest}`;
};
const ask = async (rest, signal) => (await get(await scripts(rest, signal), { signal })).result;
const at = (text) => Date.parse(text);
const short = (id) => id.slice(0, 8);
const messageOf = (item) => item.annotations?.["workers/message"] ?? "";
const tagOf = (item) => item.annotations?.["workers/tag"];

/** What changes from one list of bindings to another: [{name, kind, before, after}], those that stay left out. */
export function difference(before, after) {
  const text = ({ name, type, ...rest }) => `${type.replaceAll("_", " ")}${Object.keys(rest).length ? ` ${JSON.stringify(rest)}` : ""}`;
  const old = new Map(before.map((each) => [each.name, text(each)]));
  const now = new Map(after.map((each) => [each.name, text(each)]));
  return [...new Set([...old.keys(), ...now.keys()])].sort().filter((name) => old.get(name) !== now.get(name)).map((name) => ({
    name, kind: !old.has(name) ? "added" : !now.has(name) ? "removed" : "changed", before: old.get(name), after: now.get(name),
  }));
}

function Changes({ changes }) {
  if (!changes.length) return <p class="hint">Both have the same bindings.</p>;
  const kinds = { added: "good", removed: "bad", changed: "warn" };
  return <Table caption="Bindings that differ" rows={changes} rowKey={({ name }) => name} columns={[
    { title: "Binding", mono: true, cell: ({ name }) => name },
    { title: "Change", cell: ({ kind }) => <Badge kind={kinds[kind]}>{kind}</Badge> },
    { title: "Serves", mono: true, wide: true, cell: ({ before }) => before ?? "" },
    { title: "Chosen", mono: true, wide: true, cell: ({ after }) => after ?? "" }]} />;
}

/** A version beside the one that serves: what differs, and how much of the requests it gets. */
function RollOut({ name, versions, deployment, onDone }) {
  const serving = deployment?.versions ?? [];
  const base = serving[0]?.version_id;
  const [chosen, setChosen] = useState(serving[1]?.version_id ?? versions.find(({ id }) => id !== base)?.id ?? base);
  const [share, setShare] = useState(serving.find(({ version_id }) => version_id === chosen)?.percentage ?? 0);
  const both = useLoad((signal) => Promise.all([base, chosen].map((id) => (id ? ask(path`/${name}/versions/${id}`, signal) : { resources: { bindings: [] } }))), [name, base, chosen]);
  const label = ({ id, number, ...version }) => `${number} · ${short(id)}${tagOf(version) ? ` · ${tagOf(version)}` : ""}`;
  const deploy = async (percentage, title) => {
    const list = [{ version_id: chosen, percentage }, ...(percentage < 100 ? [{ version_id: base, percentage: 100 - percentage }] : [])];
    if (!(await confirm({ title, text: `${short(chosen)} of ${name} gets ${percentage} % of the requests. Data and Durable Objects stay as they are.`, action: "Deploy" }))) return;
    await post(await scripts(path`/${name}/deployments`), { strategy: "percentage", versions: list });
    toast("deployed");
    onDone();
  };
  return (
    <section class="card slider">
      <h2>Roll-out</h2>
      <div class="inline">
        <span>Version</span>
        <Select label="Version to roll out" value={chosen} onChange={(id) => { setChosen(id); setShare(serving.find(({ version_id }) => version_id === id)?.percentage ?? 0); }} options={versions.map((version) => [version.id, label(version)])} />
        {chosen === base ? <span class="hint">serves already</span> : <span class="hint">beside {short(base ?? "")}, which {serving.some(({ failure }) => failure) ? "should serve" : "serves"}</span>}
      </div>
      <label class="slider">
        <span>{share} % of the requests</span>
        <input type="range" min="0" max="100" step="1" value={share} disabled={chosen === base || !base} aria-label="Share of the requests" onInput={(event) => setShare(Number(event.target.value))} />
      </label>
      <div class="inline">
        <Button onClick={() => deploy(share, "Change the roll-out?")} disabled={chosen === base || !base || (share === 0 && serving.length === 1)}>Roll out to {share} %</Button>
        <Button kind="warn" onClick={() => deploy(100, "Deploy this version to all requests?")} disabled={chosen === base && serving.length === 1}>Deploy to 100 %</Button>
      </div>
      <Loaded of={both} rows={2}>{([serves, other]) => (chosen === base ? null : <Changes changes={difference(serves.resources.bindings, other.resources.bindings)} />)}</Loaded>
    </section>
  );
}

export function Audit({ worker }) {
  const audit = useLoad((signal) => get(`/api/audit${query({ worker, limit: 200 })}`, { signal }), [worker], { every: 10_000 });
  return (
    <Loaded of={audit} rows={3}>{({ entries }) => (entries.length ? <Table caption="Who changed what" rows={entries} columns={[
      { title: "What", cell: ({ action }) => action },
      ...(worker ? [] : [{ title: "Worker", cell: ({ worker }) => (worker ? <a href={href(["versions", worker])}>{worker}</a> : "") }]),
      { title: "Of it", mono: true, wide: true, cell: ({ detail }) => detail },
      { title: "By", cell: ({ by, token }) => <span title={token ? `token ${token}` : "the operator"}>{by}</span> },
      { title: "When", right: true, cell: ({ time }) => <Time ms={time} /> }]} />
      : <Empty title="Nothing was changed yet" />)}
    </Loaded>
  );
}

function Worker({ name }) {
  const loaded = useLoad(async (signal) => {
    const [{ items }, { deployments }] = await Promise.all([ask(path`/${name}/versions`, signal), ask(path`/${name}/deployments`, signal)]);
    return { items, deployments };
  }, [name]);
  const rollback = async (to) => {
    if (!(await confirm({ title: "Roll back?", text: `The version ${short(to)} of ${name} serves all requests again. Data and Durable Objects stay as they are.`, action: "Roll back" }))) return;
    await post(await scripts(path`/${name}/deployments`), { strategy: "percentage", versions: [{ version_id: to, percentage: 100 }], annotations: { "workers/message": "rollback" } });
    toast("rolled back");
    loaded.reload();
  };
  const before = (deployments) => deployments.slice(1).find(({ versions }) => versions.length === 1 && versions[0].version_id !== deployments[0].versions[0].version_id)?.versions[0].version_id;
  return (
    <>
      <Head title={name} up={["Versions", href(["versions"])]}>
        {loaded.data && <Button kind="warn" disabled={!before(loaded.data.deployments)} onClick={() => rollback(before(loaded.data.deployments))}>Roll back</Button>}
      </Head>
      <Loaded of={loaded}>{({ items, deployments }) => {
        const now = deployments[0];
        const shareOf = (id) => now?.versions.find(({ version_id }) => version_id === id)?.percentage;
        const failures = (now?.versions ?? []).filter(({ failure }) => failure).map((each) => ({ text: each.failure, version: each.version_id, wayBack: each.way_back }));
        const fails = (id) => failures.some(({ version }) => version === id);
        return (
          <>
            <Failures of={failures} />
            <div class="card"><Facts items={[
              ["Serves", now ? now.versions.map(({ version_id, percentage }) => `${short(version_id)} ${percentage} %`).join(", ") : "nothing"],
              now && ["Since", <Time ms={at(now.created_on)} />], now && ["By", now.author_email], ["Versions", format.count(items.length)],
            ]} /></div>
            <RollOut key={now?.id} name={name} versions={items} deployment={now} onDone={loaded.reload} />
            <Table caption="Versions" rows={items} rowKey={({ id }) => id} columns={[
              { title: "Version", cell: ({ id, number }) => <><span>{number} </span><Copy text={id}><code>{short(id)}</code></Copy></> },
              { title: "Serves", right: true, cell: ({ id }) => (shareOf(id) === undefined ? "" : <Badge kind={fails(id) ? "bad" : "good"}>{shareOf(id)} %{fails(id) ? " fails" : ""}</Badge>) },
              { title: "Tag", cell: (version) => tagOf(version) ?? "" },
              { title: "Message", wide: true, cell: messageOf },
              { title: "By", cell: ({ metadata }) => metadata.author_email },
              { title: "Created", right: true, cell: ({ metadata }) => <Time ms={at(metadata.created_on)} /> }]} />
          </>
        );
      }}</Loaded>
      <Audit worker={name} />
    </>
  );
}

export function Versions({ route }) {
  const name = route.path[1];
  const list = useLoad(async (signal) => {
    try { return await ask("", signal); } catch (error) { if (error.status === 501 || error.status === 400) return { refused: error.message }; throw error; }
  }, []);
  const served = useLoad((signal) => get("/api/workers", { signal }), []);
  const fails = (id) => served.data?.find((worker) => worker.name === id)?.failures.length > 0;
  if (name) return <Worker key={name} name={name} />;
  return (
    <>
      <Head title="Versions" />
      <Loaded of={list}>{(workers) => (workers.refused ? <Empty title="Nothing can be deployed here">{workers.refused}</Empty> : (
        <>
          {workers.length ? <Table rows={workers} rowKey={({ id }) => id} link={({ id }) => href(["versions", id])} columns={[
            { title: "Worker", wide: true, cell: ({ id }) => id },
            { title: "Serves", mono: true, cell: ({ id, etag }) => <>{etag ? short(etag) : "–"} {fails(id) && <Badge kind="bad">does not serve</Badge>}</> },
            { title: "Created", minor: true, right: true, cell: ({ created_on }) => <Time ms={at(created_on)} /> },
            { title: "Changed", right: true, cell: ({ modified_on }) => <Time ms={at(modified_on)} /> }]} />
            : <Empty title="Nothing was deployed by upload">`wrangler deploy` or `cairn deploy --server` puts a worker here.</Empty>}
          <Audit />
        </>))}
      </Loaded>
    </>
  );
}
