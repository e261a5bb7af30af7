// Small charts in SVG, drawn in a square of 100 × 100 that stretches.
interface Point {
  hour: number;
  requests: number;
  errors: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

interface Props {
  points: Point[];
  from: number;
  to: number;
}

const HOUR = 3_600_000;

/** Requests per hour, the errors among them at the foot. */
export function Traffic({ points, from, to }: Props) {
  const slots = Math.max(1, (to - from) / HOUR);
  const most = Math.max(1, ...points.map((point) => point.requests));
  const width = 100 / slots;
  return (
    <>
      <svg className="chart" viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="Requests per hour">
        {points.map((point) => {
          const x = ((point.hour - from) / HOUR) * width, all = (98 * point.requests) / most, bad = (98 * point.errors) / most;
          return (
            <g key={point.hour}>
              <rect className="bars" x={x + width * 0.1} width={width * 0.8} y={100 - all} height={all}>
                <title>{`${new Date(point.hour).toLocaleString()}: ${point.requests.toLocaleString()} requests, ${point.errors} errors`}</title>
              </rect>
              <rect className="errors" x={x + width * 0.1} width={width * 0.8} y={100 - bad} height={bad} />
            </g>
          );
        })}
      </svg>
      <div className="legend">
        <span><i style={{ background: "var(--accent)" }} />requests, at most {most.toLocaleString()} an hour</span>
        <span><i style={{ background: "var(--bad)" }} />errors</span>
      </div>
    </>
  );
}

const LINES = [["p50", "--quiet"], ["p95", "--accent"], ["p99", "--warn"]] as const;

export function Latency({ points, from, to }: Props) {
  const most = Math.max(1, ...points.map((point) => point.p99 ?? 0));
  const path = (name: "p50" | "p95" | "p99") =>
    points
      .filter((point) => point[name] !== null)
      .map((point, i) => `${i ? "L" : "M"}${((100 * (point.hour + HOUR / 2 - from)) / (to - from)).toFixed(2)} ${(99 - (97 * point[name]!) / most).toFixed(2)}`)
      .join("");
  return (
    <>
      <svg className="chart" viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="Response time percentiles">
        {LINES.map(([name]) => <path key={name} className={name} d={path(name)} />)}
      </svg>
      <div className="legend">
        {LINES.map(([name, color]) => <span key={name}><i style={{ background: `var(${color})` }} />{name}</span>)}
        <span>top: {most.toLocaleString()} ms</span>
      </div>
    </>
  );
}
