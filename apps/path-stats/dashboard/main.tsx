import { useState, type FormEvent, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { useSWRConfig } from "swr";
import { Chart } from "./charts";
import { type Alert, type Archives, type Failure, get, type Metrics, type Paths, type Series, setToken, useData } from "./data";

const SOURCES = { cache: "the cache", kv: "the snapshot in KV", d1: "the database", do: "the old collectors" };
const number = (value: number | null | undefined, digits = 1): string => (value === null || value === undefined ? "–" : value.toLocaleString(undefined, { maximumFractionDigits: digits }));
const ms = (value: number | null | undefined): string => (value === null || value === undefined ? "–" : `${number(value)} ms`);
const percent = (value: number | undefined): string => (value === undefined ? "–" : `${(100 * value).toFixed(value && value < 0.01 ? 2 : 1)} %`);
const plural = (n: number, one: string): string => `${number(n)} ${n === 1 ? one : `${one}s`}`;
const ago = (seconds: number): string => (seconds < 90 ? `${plural(Math.max(0, Math.round(seconds)), "second")} ago` : seconds < 5400 ? `${plural(Math.round(seconds / 60), "minute")} ago` : `${plural(Math.round(seconds / 3600), "hour")} ago`);
const size = (bytes: number): string => (bytes < 1e6 ? `${number(bytes / 1e3)} kB` : `${number(bytes / 1e6)} MB`);

/** One part of the page: what it shows, that it is loading, or why it cannot. A failure never looks like nothing. */
function Part<T>({ title, data, error, children }: { title: string; data: T | undefined; error: Failure | undefined; children: (data: T) => ReactNode }) {
  return (
    <section>
      <h2>{title}</h2>
      {error && <p className="failed" role="alert">{data ? "Not up to date" : "Could not be loaded"}: {error.message}</p>}
      {data ? children(data) : !error && <p className="quiet">Loading …</p>}
    </section>
  );
}

function Figure({ label, value, bad, note }: { label: string; value: string; bad?: boolean; note?: string }) {
  return (
    <section className="tile">
      <div className={bad ? "figure bad" : "figure"}>{value}</div>
      <div className="quiet">{label}</div>
      {note && <small className="quiet">{note}</small>}
    </section>
  );
}

function TopPaths({ paths, total, chosen, choose }: { paths: Paths["paths"]; total: number; chosen: string | null; choose: (path: string | null) => void }) {
  if (paths.length === 0) return <p className="empty">Nothing has been counted in the last 24 hours. Every request that passes through here is: open <a href="../site/hello">/site/hello</a> of the demonstration site, or set <code>ORIGIN_URL</code> to put this in front of a site of yours. Counting takes a few seconds.</p>;
  return (
    <>
      <div className="scroll" tabIndex={0} role="region" aria-label="Top paths">
        <table>
          <thead><tr><th scope="col">Path</th><th scope="col">Requests</th><th scope="col">Errors</th><th scope="col" className="wide">p50, ms</th><th scope="col">p95, ms</th><th scope="col" className="wide">p99, ms</th><th scope="col" className="wide">Visitors</th></tr></thead>
          <tbody>
            {paths.slice(0, 50).map((row) => (
              <tr key={row.path} className={row.path === chosen ? "chosen" : ""}>
                <td><button aria-pressed={row.path === chosen} onClick={() => choose(row.path === chosen ? null : row.path)}>{row.path}</button></td>
                <td>{number(row.requests)}</td>
                <td className={row.errors > 0.05 * row.requests ? "bad" : ""}>{percent(row.requests ? row.errors / row.requests : 0)}</td>
                <td className="wide">{number(row.p50)}</td>
                <td>{number(row.p95)}</td>
                <td className="wide">{number(row.p99)}</td>
                <td className="wide">{number(row.uniqueIps)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {total > 50 && <p className="quiet">The first 50 of {plural(total, "path")}.</p>}
    </>
  );
}

function Alerts({ alerts }: { alerts: Alert[] }) {
  if (alerts.length === 0) return <p className="empty">No alert has been raised. They are checked every minute: backlog, delay, failures, sizes.</p>;
  return (
    <ul className="list">
      {alerts.slice(0, 10).map((alert) => (
        <li key={alert.id}>
          <span className={`badge ${alert.ended_at ? "" : alert.severity}`}>{alert.ended_at ? "over" : alert.severity}</span>
          <span>{alert.message} <small className="quiet">{alert.type}, {alert.ended_at ? `ended ${new Date(alert.ended_at).toLocaleString()}` : `since ${new Date(alert.raised_at).toLocaleString()}`}</small></span>
        </li>
      ))}
    </ul>
  );
}

function Archive({ archives, jobs }: Archives) {
  if (archives.length + jobs.length === 0) return <p className="empty">Nothing is archived yet. At 02:00 UTC days that are three days old move to R2; <code>POST /admin/archive/trigger</code> does it at once.</p>;
  return (
    <ul className="list">
      {jobs.map((job) => <li key={job.date}><span className={`badge ${job.error ? "critical" : "info"}`}>{job.state}</span><span>{job.date}{job.error && ` failed: ${job.error}`}</span></li>)}
      {archives.slice(0, 10).map((archive) => <li key={archive.path}><span className="badge">{archive.format}</span><span>{archive.date}: {plural(archive.recordCount, "event")}, {size(archive.size)}</span></li>)}
    </ul>
  );
}

function Pipeline({ metrics }: { metrics: Metrics }) {
  const { queue, aggregator, api, snapshot, d1 } = metrics;
  const facts: [string, string, boolean?][] = [
    ["Waiting in the queue", plural(queue.backlog, "message"), queue.backlog > 10_000],
    ["Consumed", `${number(queue.consumedPerSecond)} per second`],
    ["Failed, tried again", number(queue.failures), queue.failures > 0],
    ["Dead letters", number(queue.deadLetters), queue.deadLetters > 0],
    ["Refused, waiting in D1", number(queue.pending), queue.pending > 0],
    ["Batch, mean and longest", `${ms(aggregator.batchMeanMs)}, ${ms(aggregator.batchMostMs)}`],
    ["Latest by", ms(aggregator.delayMostMs)],
    ["Failed writes to D1", percent(aggregator.d1FailureShare), aggregator.d1Failures > 0],
    ["Answers from the cache", api.answered ? percent(api.cacheHitShare) : "–"],
    ["Answers from D1", number(api.fallbacks)],
    ["Snapshot", snapshot.ageMs === null ? "none yet" : ago(snapshot.ageMs / 1000)],
    ["Largest database", `${number(d1.largestMB)} MB`, d1.largestMB > 800],
    ["Strategy, phase", `${aggregator.strategy}, ${metrics.phase}`],
  ];
  return <dl className="facts">{facts.map(([name, value, bad]) => <div key={name}><dt>{name}</dt><dd className={bad ? "bad" : ""}>{value}</dd></div>)}</dl>;
}

function Login({ onDone }: { onDone: () => void }) {
  const enter = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    setToken(String(new FormData(event.currentTarget).get("token")));
    onDone();
  };
  return (
    <form className="login" onSubmit={enter}>
      <p>These figures need a token: <code>READ_TOKEN</code> of this server, or its <code>ADMIN_TOKEN</code>.</p>
      <label>Token <input name="token" type="password" autoComplete="current-password" required /></label> <button>Show the figures</button>
    </form>
  );
}

function Dashboard() {
  const [hours, setHours] = useState(24);
  const [path, setPath] = useState<string | null>(null);
  const [refreshing, setRefreshing] = useState<"" | "now" | "failed">("");
  const { mutate } = useSWRConfig();
  const paths = useData<Paths>("paths");
  const series = useData<Series>(`paths/stats?hours=${hours}${path === null ? "" : `&path=${encodeURIComponent(path)}`}`);
  const alerts = useData<{ alerts: Alert[] }>("paths/alerts");
  const archives = useData<Archives>("paths/archives");
  const metrics = useData<Metrics>("paths/metrics");

  // The answer comes at once and is renewed behind it: ask until the version changes.
  async function refresh() {
    setRefreshing("now");
    try {
      const before = (await get<Paths>("paths?refresh=true")).version;
      for (let tries = 0; tries < 20; tries++) {
        const now = await paths.mutate(get<Paths>("paths"), { revalidate: false });
        if (now?.version !== before) break;
        await new Promise((resolve) => setTimeout(resolve, 300));
      }
      await mutate((key) => typeof key === "string" && key !== "paths");
      setRefreshing("");
    } catch {
      setRefreshing("failed");
    }
  }

  const total = series.data?.total;
  const open = alerts.data?.alerts.filter((alert) => alert.ended_at === null) ?? [];
  const several = series.data?.visitors.counted === "visitor-periods";
  return (
    <>
      <header>
        <h1>Path statistics</h1>
        {paths.data && <span className="quiet" id="source">From {SOURCES[paths.data.dataSource]}, updated {new Date(paths.data.lastUpdated).toLocaleTimeString()} ({ago(paths.data.stalenessSeconds)})</span>}
        <label>Time span <select value={hours} onChange={(event) => setHours(Number(event.target.value))}>
          <option value={6}>6 hours</option>
          <option value={24}>24 hours</option>
          <option value={168}>7 days</option>
          <option value={720}>30 days</option>
          <option value={2160}>90 days</option>
        </select></label>
        <button onClick={refresh} disabled={refreshing === "now"} id="refresh">{refreshing === "now" ? "Refreshing …" : "Refresh"}</button>
      </header>
      <main>
        {paths.error?.denied && <Login onDone={() => mutate(() => true)} />}
        {refreshing === "failed" && <p className="notice warning" role="alert">Refreshing failed. The figures are those from before.</p>}
        {paths.data?.stale && <p className="notice warning" id="stale">These figures are {ago(paths.data.stalenessSeconds)}. New ones are being made.</p>}
        {open.map((alert) => <p className={`notice ${alert.severity}`} key={alert.id}>{alert.message}</p>)}
        <div className="tiles">
          <Figure label={path ? `requests to ${path}` : "requests"} value={number(total?.requests)} />
          <Figure label="errors" value={percent(total?.errorRate)} bad={(total?.errorRate ?? 0) > 0.05} />
          <Figure label="95 % are answered within" value={ms(total?.p95)} />
          <Figure label={several ? "visitors, counted once a day" : "visitors"} value={number(total?.uniqueIps)}
            note={several ? `Addresses are forgotten every ${plural(series.data!.visitors.periodHours, "hour")}: who comes on two days counts twice.` : "different addresses, about"} />
        </div>
        <div className="grid two">
          <Part title="Traffic" {...series}>{(data) => data.series.length === 0 ? <p className="empty">Nothing in this time. Choose a longer one above{path ? ", or another path below" : ""}.</p> : (
            <Chart title={data.step > 3_600_000 ? "Requests per day" : "Requests per hour"} points={data.series} from={data.from} to={data.to} step={data.step} format={(value) => number(value)}
              lines={[{ name: "requests", color: "--accent", bars: true, value: (point) => point.requests }, { name: "errors", color: "--bad", bars: true, value: (point) => point.errors }]} />)}</Part>
          <Part title="Response time" {...series}>{(data) => data.series.length === 0 ? <p className="empty">Nothing in this time.</p> : (
            <Chart title="Milliseconds" points={data.series} from={data.from} to={data.to} step={data.step} format={(value) => number(value)}
              lines={[{ name: "p50", color: "--quiet", value: (point) => point.p50 }, { name: "p95", color: "--accent", value: (point) => point.p95 }, { name: "p99", color: "--warn", value: (point) => point.p99 }]} />)}</Part>
        </div>
        <Part title="Top paths, 24 hours" {...paths}>{(data) => <TopPaths paths={data.paths} total={data.totalPaths} chosen={path} choose={setPath} />}</Part>
        <div className="grid two">
          <Part title="Alerts" {...alerts}>{(data) => <Alerts alerts={data.alerts} />}</Part>
          <Part title="Pipeline, the last five minutes" {...metrics}>{(data) => <Pipeline metrics={data} />}</Part>
          <Part title="Archive" {...archives}>{(data) => <Archive {...data} />}</Part>
        </div>
      </main>
    </>
  );
}

createRoot(document.getElementById("root")!).render(<Dashboard />);
