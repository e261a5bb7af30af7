// How the server is: what it does now, and the last minutes.
import { get, send } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { quantile, samples, total, useMetrics } from "../lib/metrics.js";
import { href } from "../lib/router.js";
import { Chart } from "../ui/chart.jsx";
import { Badge, Empty, Head, Loading, Table, Trouble } from "../ui/parts.jsx";
import { Memory } from "./memory.jsx";

const perSecond = (value) => (value === undefined ? "–" : `${format.short(value)}/s`);
const names = (families, metric, label) => [...new Set(samples(families, metric).map(({ labels }) => labels[label]))].sort();

/** What each worker does: rates of the last two seconds, percentiles since the start. */
export function workerRows({ families, before, seconds }) {
  return names(families, "requests_total", "worker").filter((worker) => !worker.startsWith("$")).map((worker) => {
    const fits = (labels) => labels.worker === worker;
    const gained = (name, check = fits) => (before ? (total(families, name, check) - total(before, name, check)) / seconds : undefined);
    return {
      worker, requests: total(families, "requests_total", fits), rate: gained("requests_total"),
      failed: total(families, "requests_total", (labels) => fits(labels) && labels.status === "5xx"), exceptions: total(families, "worker_exceptions_total", fits), memory: total(families, "worker_memory_bytes", fits),
      p50: quantile(families, undefined, "request_duration_seconds", 0.5, fits), p99: quantile(families, undefined, "request_duration_seconds", 0.99, fits),
    };
  });
}

function classRows({ families, before, seconds }) {
  return names(families, "object_calls_total", "namespace").map((namespace) => {
    const fits = (labels) => labels.namespace === namespace;
    const sum = (name) => total(families, name, fits);
    return {
      namespace, calls: sum("object_calls_total"), rate: before ? (sum("object_calls_total") - total(before, "object_calls_total", fits)) / seconds : undefined,
      failures: sum("object_call_failures_total") + sum("object_overloaded_total"),
      live: sum("objects_started_total") - sum("objects_evicted_total"), alarms: sum("alarms_fired_total"),
      p50: quantile(families, undefined, "object_call_duration_seconds", 0.5, fits), p99: quantile(families, undefined, "object_call_duration_seconds", 0.99, fits),
    };
  }).filter(({ calls, live }) => calls || live).sort((a, b) => b.calls - a.calls);
}

export function Overview() {
  const metrics = useMetrics();
  const ready = useLoad(async (signal) => {
    try { await send("GET", "/readyz", { signal }); return "ready"; } catch (error) { if (error.status === 503) return error.message.trim(); throw error; }
  }, [], { every: 5000 });
  const cluster = useLoad((signal) => get("/api/cluster", { signal }), []);
  const { points, families, error } = metrics;
  if (!families) return <><Head title="Overview" />{error ? <Trouble error={error} /> : <Loading rows={12} />}</>;
  const now = points.at(-1) ?? {};
  const requests = now.ok === undefined ? undefined : now.ok + now.client + now.failed;
  const line = (name, key, color, area) => ({ name, color, area, value: (point) => point[key] });
  const workers = workerRows(metrics), classes = classRows(metrics);
  const version = samples(families, "build_info")[0]?.labels.version;
  return (
    <>
      <Head title="Overview" note={version && `cairn ${version}${cluster.data?.member ? `, node ${cluster.data.self.node} alone` : ""}`}>
        {error && <Badge kind="bad">no answer</Badge>}
        {ready.data && <Badge kind={ready.data === "ready" ? "good" : "bad"}>{ready.data}</Badge>}
      </Head>
      <div class="charts">
        <Chart title="Requests" big={perSecond(requests)} points={points} unit={perSecond}
          series={[line("answered", "ok", "c1", true), line("4xx", "client", "c2")]} />
        <Chart title="Latency, 99th percentile" big={format.seconds(now.latency99)} points={points} unit={format.seconds}
          series={[line("p99", "latency99", "c4", true), line("p50", "latency50", "c1")]} />
        <Chart title="Errors" big={perSecond(now.failed === undefined ? undefined : now.failed + now.refused)} points={points} unit={perSecond}
          series={[line("5xx", "failed", "c3", true), line("exceptions", "exceptions", "c2"), line("refused", "refused", "c4")]} />
        <Chart title="Objects in memory" big={format.count(now.objects)} points={points} unit={format.short}
          series={[line("live", "objects", "c1", true), line("started/s", "started", "c2")]} />
        <Chart title="Log flush, 99th percentile" big={format.seconds(now.flush99)} points={points} unit={format.seconds}
          series={[line("p99", "flush99", "c4", true), line("p50", "flush50", "c1")]} />
        <Chart title="Memory" big={format.bytes(now.memory)} points={points} unit={format.bytes} base={2}
          series={[line("resident", "memory", "c1", true), line("JavaScript heap", "heap", "c2")]} />
      </div>
      <dl class="tiles">
        {[["Connections", format.count(total(families, "connections_open"))], ["In flight", format.count(total(families, "requests_in_flight"))],
          ["CPU", now.cpu === undefined ? "–" : `${format.digits(now.cpu * 100)} %`], ["Commits", perSecond(now.commits)], ["Log written", now.written === undefined ? "–" : `${format.bytes(now.written)}/s`],
          ["Log to replay", format.bytes(total(families, "log_live_bytes"))], ["History", format.bytes(total(families, "history_bytes"))],
          ["Writes", total(families, "store_writable") ? "accepted" : samples(families, "store_writable").length ? <span class="wrong">refused</span> : "no store"],
        ].map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
      <Memory families={families} />
      {workers.length > 0 && <Table caption="Workers" rows={workers} rowKey={({ worker }) => worker} link={() => href(["workers"])} columns={[
        { title: "Worker", wide: true, cell: ({ worker }) => worker },
        { title: "Now", right: true, cell: ({ rate }) => perSecond(rate) },
        { title: "Requests", right: true, cell: ({ requests }) => format.count(requests) },
        { title: "5xx", right: true, cell: ({ failed }) => (failed ? <span class="wrong">{format.count(failed)}</span> : <span class="faint">0</span>) },
        { title: "Memory", right: true, minor: true, cell: ({ memory }) => format.bytes(memory) },
        { title: "p50", right: true, minor: true, cell: ({ p50 }) => format.seconds(p50) },
        { title: "p99", right: true, cell: ({ p99 }) => format.seconds(p99) }]} />}
      {classes.length > 0 ? <Table caption="Classes and services" rows={classes.slice(0, 50)} rowKey={({ namespace }) => namespace}
        link={({ namespace }) => href(["objects"], { ns: namespace, services: namespace.startsWith("$") ? "1" : "" })} columns={[
        { title: "Class", wide: true, cell: ({ namespace }) => namespace },
        { title: "Now", right: true, cell: ({ rate }) => perSecond(rate) },
        { title: "Calls", right: true, cell: ({ calls }) => format.count(calls) },
        { title: "Failed", right: true, cell: ({ failures }) => (failures ? <span class="wrong">{format.count(failures)}</span> : <span class="faint">0</span>) },
        { title: "In memory", right: true, minor: true, cell: ({ live }) => format.count(live) },
        { title: "Alarms run", right: true, minor: true, cell: ({ alarms }) => format.count(alarms) },
        { title: "p99", right: true, cell: ({ p99 }) => format.seconds(p99) }]} />
        : <Empty title="No object has been called yet" />}
    </>
  );
}
