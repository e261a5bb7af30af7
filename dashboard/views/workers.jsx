// The workers that are served: what they are bound to, and what they do.
import { get, post } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { useMetrics } from "../lib/metrics.js";
import { href } from "../lib/router.js";
import { Badge, Button, confirm, Empty, Facts, Failures, Head, Loaded, Time, toast } from "../ui/parts.jsx";
import { workerRows } from "./overview.jsx";

/** Where the data of a binding is shown, and how its kind is called. */
const places = { kv: "kv", r2: "r2", d1: "d1", queue: "queues" };
const kinds = { durable_object_namespace: "object", kv_namespace: "KV", r2_bucket: "R2", d1: "D1" };
function Target({ type, target }) {
  if (!target) return <span class="faint">–</span>;
  const kind = Object.keys(places).find((name) => type.startsWith(name));
  if (kind) return <a href={href([places[kind], target])}>{target}</a>;
  if (/durable|object/.test(type) && target.includes("/")) return <a href={href(["objects"], { ns: target })}>{target}</a>;
  return <>{target}</>;
}

function Worker({ worker, row }) {
  return (
    <section class="card worker" data-row tabIndex={-1}>
      <header><h2>{worker.name}</h2><span class="hint mono">{[worker.compiled, worker.main].filter(Boolean).join(", ")}</span></header>
      <Failures of={worker.failures ?? []} />
      <Facts items={[
        row && ["Requests", `${format.count(row.requests)}${row.rate === undefined ? "" : ` · ${format.short(row.rate)}/s`}`],
        row && ["Latency", `p50 ${format.seconds(row.p50)} · p99 ${format.seconds(row.p99)}`],
        row && ["Errors", row.failed || row.exceptions ? <span class="wrong">{format.count(row.failed)} × 5xx, {format.count(row.exceptions)} exceptions</span> : "none"],
        ["Deployed", <Time ms={worker.deployedAt} />],
        ["Compatibility date", worker.compatibilityDate ?? "–"],
        worker.routes?.length > 0 && ["Routes", worker.routes.join(", ")],
        worker.classes?.length > 0 && ["Classes", <span class="list">{worker.classes.map(({ name, namespace }) => <a key={name} href={href(["objects"], { ns: namespace })}>{name}</a>)}</span>],
        worker.crons?.length > 0 && ["Cron triggers", <a href={href(["crons"])}>{worker.crons.join(", ")}</a>],
        worker.entrypoints?.length > 0 && ["Entrypoints", worker.entrypoints.join(", ")],
      ]} />
      {worker.bindings?.length > 0 && (
        <div class="bindings">{worker.bindings.map(({ type, name, target }) => (
          <div key={name}><Badge>{kinds[type] ?? type.replaceAll("_", " ")}</Badge><code>{name}</code><span class="soft"><Target type={type} target={target} /></span></div>))}
        </div>
      )}
    </section>
  );
}

export function Workers() {
  const loaded = useLoad((signal) => get("/api/workers", { signal }).then((answer) => answer.workers ?? answer), []);
  const metrics = useMetrics();
  const rows = metrics.families ? workerRows(metrics) : [];
  const deploy = async () => {
    if (!(await confirm({ title: "Deploy again?", text: "The projects are read and built again, as with SIGHUP. Requests under way finish on the old version.", action: "Deploy" }))) return;
    await post("/api/deploy");
    toast("deployed");
    loaded.reload();
  };
  return (
    <>
      <Head title="Workers"><Button onClick={deploy}>Deploy again</Button></Head>
      <Loaded of={loaded}>{(workers) => (workers.length ? workers.map((worker) => <Worker key={worker.name} worker={worker} row={rows.find((row) => row.worker === worker.name)} />)
        : <Empty title="No workers">Nothing is deployed.</Empty>)}</Loaded>
    </>
  );
}
