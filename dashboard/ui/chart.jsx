// Lines over time, drawn as SVG, with both axes; the legend has the values of now, or of the moment under the pointer.
import { useRef, useState } from "preact/hooks";
import * as format from "../lib/format.js";

const WIDTH = 600, HEIGHT = 120, SPAN_MIN_MS = 60_000, SPAN_MAX_MS = 10 * 60_000;

/** 1, 2 or 5 times a power of ten, not below `value`. */
function ceiling(value, base = 10) {
  if (!(value > 0)) return 1;
  if (base === 2) { const step = 2 ** Math.floor(Math.log2(value)); return [1, 1.5, 2].map((m) => m * step).find((v) => v >= value); }
  const step = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((m) => m * step).find((v) => v >= value * 0.999);
}

/** The points as pieces of a line: where a value is missing it is broken. */
function pieces(points, value, x, y) {
  const out = [];
  let piece = [];
  for (const point of points) {
    const v = value(point);
    if (v === undefined) { if (piece.length) out.push(piece); piece = []; } else piece.push([x(point.at), y(v)]);
  }
  if (piece.length) out.push(piece);
  return out;
}
const draw = (piece) => piece.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") + (piece.length === 1 ? "h0" : "");

/** `series`: [{name, color, value(point), area}]; `unit` writes a value; `big` is what stands above. */
export function Chart({ title, points, series, unit = format.short, base, big }) {
  const [hover, setHover] = useState();
  const box = useRef();
  // The window grows with what is known, up to ten minutes.
  const end = points.at(-1)?.at ?? Date.now();
  const span = Math.min(Math.max(end - (points[0]?.at ?? end), SPAN_MIN_MS), SPAN_MAX_MS), start = end - span;
  const seen = points.filter(({ at }) => at >= start);
  const top = ceiling(Math.max(0, ...seen.flatMap((point) => series.map(({ value }) => value(point) ?? 0))), base);
  const x = (at) => ((at - start) / span) * WIDTH, y = (value) => HEIGHT - (value / top) * (HEIGHT - 6);
  const shown = hover && seen.length ? seen.reduce((a, b) => (Math.abs(b.at - hover) < Math.abs(a.at - hover) ? b : a)) : undefined;
  const move = (event) => {
    const { left, width } = box.current.getBoundingClientRect();
    setHover(start + ((event.clientX - left) / width) * span);
  };
  // The arrow keys go from point to point.
  const step = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !seen.length) return;
    event.preventDefault();
    event.stopPropagation();
    const now = shown ? seen.indexOf(shown) : seen.length;
    setHover(seen[Math.min(seen.length - 1, Math.max(0, now + by))].at);
  };
  return (
    <figure class="card chart">
      <figcaption><span>{title}</span><strong>{big}</strong></figcaption>
      <div class="frame">
      <div class="axis y" aria-hidden="true">{[top, top / 2, 0].map((value) => <span key={value} style={{ top: `${(100 * y(value)) / HEIGHT}%` }}>{unit(value)}</span>)}</div>
      <div class="plot" ref={box} tabIndex={0} role="img" aria-label={`${title}: ${series.map(({ name, value }) => `${name} ${unit(value(shown ?? seen.at(-1) ?? {}))}`).join(", ")}. Arrow keys go back in time.`}
        onPointerMove={move} onPointerLeave={() => setHover(undefined)} onBlur={() => setHover(undefined)} onKeyDown={step}>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="grid" d={`M0 ${y(top)}H${WIDTH}M0 ${y(top / 2)}H${WIDTH}M0 ${HEIGHT}H${WIDTH}`} />
          {series.map(({ name, color, value, area }) => pieces(seen, value, x, y).map((piece, i) => (
            <g key={name + i} class={color}>
              {area && piece.length > 1 && <path class="area" d={`${draw(piece)}L${piece.at(-1)[0].toFixed(1)} ${HEIGHT}L${piece[0][0].toFixed(1)} ${HEIGHT}Z`} />}
              <path class={piece.length === 1 ? "line dot" : "line"} d={draw(piece)} />
            </g>)))}
          {shown && <path class="cross" d={`M${x(shown.at)} 0V${HEIGHT}`} />}
        </svg>
        {seen.length < 2 && <span class="wait">waiting for data</span>}
      </div>
      <div class="axis x" aria-hidden="true">{[start, start + span / 2, end].map((at) => <span key={at}>{format.clock(at)}</span>)}</div>
      </div>
      <div class="legend">
        {series.map(({ name, color, value }) => <span key={name} class={color}><i />{name} <b>{unit(value(shown ?? seen.at(-1) ?? {}))}</b></span>)}
        <time>{shown ? `at ${format.clock(shown.at)}` : "now"}</time>
      </div>
    </figure>
  );
}
