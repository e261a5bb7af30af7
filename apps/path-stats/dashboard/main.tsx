import { useState } from "react";
import { createRoot } from "react-dom/client";
import useSWR from "swr";
import { Latency, Traffic } from "./charts";

interface Summary {
  requests: number;
  errors: number;
  errorRate: number;
  meanMs: number | null;
  p50: number | null;
  p95: number | null;
  p99: number | null;
  uniques: number;
}
interface Paths {
  paths: ({ path: string } & Summary)[];
  lastUpdated: number;
  version: string;
  dataSource: "cache" | "kv" | "d1";
  stale: boolean;
  stalenessSeconds: number;
}
interface Series {
  from: number;
  to: number;
  total: Summary;
  hours: ({ hour: number } & Summary)[];
}
interface Alert {
  id: number;
  kind: string;
  message: string;
  raised_at: number;
  ended_at: number | null;
}
interface Archive {
  date: string;
  phase: string;
  key: string;
  rows: number;
  bytes: number;
}

async function get<T>(url: string): Promise<T> {
  const response = await fetch(url);
  const value = await response.json();
  if (!response.ok) throw new Error(value.error);
  return value;
}
const useData = <T,>(url: string) => useSWR<T>(url, get, { refreshInterval: 15_000, keepPreviousData: true });

const SOURCES = { cache: "cache", kv: "snapshot", d1: "database" };
const number = (value: number | null | undefined): string => (value === null || value === undefined ? "–" : value.toLocaleString(undefined, { maximumFractionDigits: 1 }));
const percent = (value: number): string => `${(100 * value).toFixed(value && value < 0.01 ? 2 : 1)} %`;
const ago = (seconds: number): string => (seconds < 90 ? `${seconds} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`);

function Figure({ label, value, bad }: { label: string; value: string; bad?: boolean }) {
  return (
    <section>
      <div className={bad ? "figure bad" : "figure"}>{value}</div>
      <div className="quiet">{label}</div>
    </section>
  );
}

function TopPaths({ paths, chosen, choose }: { paths: Paths["paths"]; chosen: string | null; choose: (path: string | null) => void }) {
  if (paths.length === 0) return <p className="quiet">Nothing has been counted yet.</p>;
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr><th>Path</th><th>Requests</th><th>Errors</th><th className="wide">p50</th><th>p95</th><th className="wide">p99</th><th className="wide">Visitors</th></tr>
        </thead>
        <tbody>
          {paths.slice(0, 50).map((row) => (
            <tr key={row.path} aria-selected={row.path === chosen}>
              <td><button onClick={() => choose(row.path === chosen ? null : row.path)}>{row.path}</button></td>
              <td>{number(row.requests)}</td>
              <td className={row.errorRate > 0.05 ? "bad" : ""}>{percent(row.errorRate)}</td>
              <td className="wide">{number(row.p50)}</td>
              <td>{number(row.p95)}</td>
              <td className="wide">{number(row.p99)}</td>
              <td className="wide">{number(row.uniques)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Dashboard() {
  const [hours, setHours] = useState(24);
  const [path, setPath] = useState<string | null>(null);
  const [refreshing, setRefreshing] = useState(false);
  const paths = useData<Paths>("/paths");
  const series = useData<Series>(`/paths/stats?hours=${hours}${path === null ? "" : `&path=${encodeURIComponent(path)}`}`);
  const alerts = useData<{ alerts: Alert[] }>("/paths/alerts");
  const archives = useData<{ archives: Archive[] }>("/paths/archives");

  // The answer comes at once and is renewed behind it: ask until the version changes.
  async function refresh() {
    setRefreshing(true);
    const before = paths.data?.version;
    await get("/paths?refresh=true");
    for (let tries = 0; tries < 20; tries++) {
      const now = await paths.mutate();
      if (now?.version !== before) break;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    await series.mutate();
    setRefreshing(false);
  }

  const error = paths.error ?? series.error;
  const total = series.data?.total;
  const open = alerts.data?.alerts.filter((alert) => alert.ended_at === null) ?? [];
  return (
    <>
      <header>
        <h1>Path statistics</h1>
        {paths.data && <span className="quiet" id="source">from {SOURCES[paths.data.dataSource]}, {ago(paths.data.stalenessSeconds)} old</span>}
        <select value={hours} onChange={(event) => setHours(Number(event.target.value))} aria-label="Time span">
          <option value={6}>6 hours</option>
          <option value={24}>24 hours</option>
          <option value={168}>7 days</option>
          <option value={720}>30 days</option>
        </select>
        <button onClick={refresh} disabled={refreshing} id="refresh">{refreshing ? "Refreshing …" : "Refresh"}</button>
      </header>
      {error && <p className="notice">Not up to date: {String(error.message)}</p>}
      {paths.data?.stale && <p className="notice">These figures are {ago(paths.data.stalenessSeconds)} old. New ones are being made.</p>}
      {open.map((alert) => <p className="notice" key={alert.id}>{alert.message}</p>)}
      <div className="grid">
        <Figure label={path ? `requests to ${path}` : "requests"} value={number(total?.requests)} />
        <Figure label="errors" value={total ? percent(total.errorRate) : "–"} bad={(total?.errorRate ?? 0) > 0.05} />
        <Figure label="p95, ms" value={number(total?.p95)} />
        <Figure label="unique visitors" value={number(total?.uniques)} />
      </div>
      {series.data && (
        <div className="grid two">
          <section><h2>Traffic</h2><Traffic points={series.data.hours} from={series.data.from} to={series.data.to} /></section>
          <section><h2>Response time</h2><Latency points={series.data.hours} from={series.data.from} to={series.data.to} /></section>
        </div>
      )}
      <section style={{ marginBottom: "1rem" }}>
        <h2>Top paths, 24 hours</h2>
        {paths.data && <TopPaths paths={paths.data.paths} chosen={path} choose={setPath} />}
      </section>
      <div className="grid two">
        <section>
          <h2>Alerts</h2>
          {alerts.data?.alerts.length ? (
            <table><tbody>{alerts.data.alerts.slice(0, 10).map((alert) => (
              <tr key={alert.id}><td>{alert.message}</td><td>{alert.ended_at ? `ended ${new Date(alert.ended_at).toLocaleString()}` : "now"}</td></tr>
            ))}</tbody></table>
          ) : <p className="quiet">None.</p>}
        </section>
        <section>
          <h2>Archive</h2>
          {archives.data?.archives.length ? (
            <table><tbody>{archives.data.archives.slice(0, 10).map((archive) => (
              <tr key={archive.date}><td>{archive.date}</td><td>{number(archive.rows)} rows</td><td>{number(archive.bytes / 1e6)} MB</td><td>{archive.phase}</td></tr>
            ))}</tbody></table>
          ) : <p className="quiet">Nothing yet: days move here when they are three days old.</p>}
        </section>
      </div>
    </>
  );
}

createRoot(document.getElementById("root")!).render(<Dashboard />);
