// Charts: values over time with both axes, and what is under the pointer (or chosen with the arrow keys) in words.
import { useId, useState, type KeyboardEvent, type PointerEvent } from "react";

export interface Line<P> {
  name: string;
  color: string;
  value: (point: P) => number | null;
  /** Bars from the ground instead of a line. */
  bars?: boolean;
}

interface Props<P> {
  title: string;
  points: P[];
  from: number;
  to: number;
  step: number;
  lines: Line<P>[];
  format: (value: number) => string;
}

const TICKS = 4;
const HOUR = 3_600_000;

/** The least round number of steps of 1, 2 or 5 times a power of ten that reaches `most`. */
export function scale(most: number): { top: number; ticks: number[] } {
  const rough = Math.max(most, 1) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((n) => n * power >= rough)!;
  const count = Math.max(1, Math.ceil(Math.max(most, 1) / step - 1e-9));
  return { top: count * step, ticks: Array.from({ length: count + 1 }, (_, n) => n * step) };
}

const clock = (time: number): string => new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = (time: number): string => new Date(time).toLocaleDateString(undefined, { day: "numeric", month: "short" });
const label = (time: number, step: number): string => (step > HOUR ? day(time) : clock(time));
const inFull = (time: number, step: number): string => (step > HOUR ? day(time) : `${day(time)}, ${clock(time)} to ${clock(time + step)}`);

export function Chart<P extends { time: number }>({ title, points, from, to, step, lines, format }: Props<P>) {
  const [at, setAt] = useState<number | null>(null);
  const id = useId();
  const slots = Math.max(1, Math.round((to - from) / step));
  const { top, ticks } = scale(Math.max(0, ...points.flatMap((point) => lines.map((line) => line.value(point) ?? 0))));
  const x = (time: number): number => (100 * (time + step / 2 - from)) / (to - from);
  const y = (value: number): number => 100 - (100 * value) / top;
  const shown = at === null ? undefined : points[at];
  const every = Math.max(1, Math.ceil(slots / 6));
  const times = Array.from({ length: Math.ceil(slots / every) }, (_, n) => from + n * every * step);

  const nearest = (event: PointerEvent<HTMLDivElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const wanted = (100 * (event.clientX - box.left)) / box.width;
    let best: number | null = null;
    points.forEach((point, n) => { if (best === null || Math.abs(x(point.time) - wanted) < Math.abs(x(points[best].time) - wanted)) best = n; });
    setAt(best);
  };
  const move = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") setAt(null);
    if (!by || points.length === 0) return;
    event.preventDefault();
    setAt((now) => (now === null ? points.length - 1 : Math.min(points.length - 1, Math.max(0, now + by))));
  };
  const path = (line: Line<P>): string => {
    const known = points.filter((point) => line.value(point) !== null);
    const steps = known.map((point, n) => `${n ? "L" : "M"}${x(point.time).toFixed(2)} ${y(line.value(point)!).toFixed(2)}`).join("");
    return known.length === 1 ? `${steps}h0` : steps; // one alone is a dot
  };

  return (
    <figure className="chart" data-chart={title}>
      <figcaption>
        <span>{title}</span>
        <span className="legend">{lines.map((line) => <span key={line.name}><i style={{ background: `var(${line.color})` }} />{line.name}</span>)}</span>
      </figcaption>
      <div className="frame">
        <div className="y" aria-hidden="true">{ticks.map((tick) => <span key={tick} style={{ top: `${y(tick)}%` }}>{format(tick)}</span>)}</div>
        <div className="plot" tabIndex={0} role="img" aria-label={`${title}: ${points.length ? `${points.length} values, at most ${format(Math.max(...points.map((point) => lines[0].value(point) ?? 0)))}. Arrow keys go through them.` : "no values"}`}
          aria-describedby={id} onPointerMove={nearest} onPointerDown={nearest} onPointerLeave={() => setAt(null)} onKeyDown={move} onBlur={() => setAt(null)}>
          <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
            {ticks.map((tick) => <path key={tick} className="grid" d={`M0 ${y(tick)}H100`} />)}
            {lines.filter((line) => line.bars).map((line) => points.map((point) => {
              const width = (80 / slots), height = 100 - y(line.value(point) ?? 0);
              return <rect key={`${line.name}${point.time}`} fill={`var(${line.color})`} x={x(point.time) - width / 2} width={width} y={100 - height} height={height} />;
            }))}
            {lines.filter((line) => !line.bars).map((line) => <path key={line.name} className="line" stroke={`var(${line.color})`} d={path(line)} />)}
            {shown && <path className="cross" d={`M${x(shown.time)} 0V100`} />}
          </svg>
          {shown && (
            <div className="tip" style={{ left: `max(0px, min(${x(shown.time)}% + .5rem, 100% - 12rem))` }}>
              <b>{inFull(shown.time, step)}</b>
              {lines.map((line) => <span key={line.name}><i style={{ background: `var(${line.color})` }} />{line.name}: {line.value(shown) === null ? "–" : format(line.value(shown)!)}</span>)}
            </div>
          )}
        </div>
        <div className="x" aria-hidden="true">{times.map((time) => <span key={time} style={{ left: `${(100 * (time - from)) / (to - from)}%` }}>{label(time, step)}</span>)}</div>
      </div>
      <p className="unseen" id={id} aria-live="polite">{shown ? `${inFull(shown.time, step)}: ${lines.map((line) => `${line.name} ${line.value(shown) === null ? "unknown" : format(line.value(shown)!)}`).join(", ")}` : ""}</p>
    </figure>
  );
}
