// A chart of values over time: both axes, and what is under the pointer (or chosen with the arrow keys) in words.
const TICKS = 4;
const DAY = 86_400_000;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Round steps from at or below `low` to at or above `high`. */
export function scale(low, high) {
  const rough = Math.max(high - low, 1) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((n) => n * power >= rough);
  const ticks = [];
  for (let tick = Math.floor(low / step) * step; ; tick += step) {
    ticks.push(tick);
    if (tick >= high && ticks.length > 1) return ticks;
  }
}

const clock = (time) => new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = (time) => new Date(time).toLocaleDateString(undefined, { day: "numeric", month: "short" });

/** Round times between two: minutes, hours or days apart, at most six. */
function times(from, to) {
  const step = [5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 2880, 7200].map((minutes) => minutes * 60_000).find((step) => (to - from) / step <= 6) ?? 10 * DAY;
  const offset = new Date(from).getTimezoneOffset() * 60_000; // round where the reader is
  const found = [];
  for (let time = Math.ceil((from - offset) / step) * step + offset; time < to; time += step) found.push(time);
  return found;
}

/**
 * Draws into `box`. `points`: {time, ...}; `lines`: {name, value(point), class}; values may be null.
 */
export function drawChart(box, { label, points, from, to, lines, format }) {
  const values = points.flatMap((point) => lines.map((line) => line.value(point))).filter((value) => value !== null);
  const ticks = scale(Math.min(...values), Math.max(...values));
  const [low, high] = [ticks[0], ticks.at(-1)];
  const x = (time) => (100 * (time - from)) / (to - from);
  const y = (value) => 100 - (100 * (value - low)) / (high - low);
  const path = (line) => {
    const known = points.filter((point) => line.value(point) !== null);
    const steps = known.map((point, i) => `${i ? "L" : "M"}${x(point.time).toFixed(2)} ${y(line.value(point)).toFixed(2)}`).join("");
    return known.length === 1 ? `${steps}h0` : steps; // one alone is a dot
  };
  const cross = svg("path", { class: "cross", d: "" });
  const drawing = svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" },
    ...ticks.map((tick) => svg("path", { class: "grid", d: `M0 ${y(tick)}H100` })), ...lines.map((line) => svg("path", { class: line.class, d: path(line) })), cross);
  const tip = element("div", { class: "tip", hidden: "" });
  const plot = element("div", { class: "plot", tabindex: "0", role: "img", "aria-label": `${label}. Arrow keys go through the values.` }, drawing, tip);
  const spoken = element("p", { class: "unseen", "aria-live": "polite" });
  const yAxis = element("div", { class: "y", "aria-hidden": "true" }, ...ticks.map((tick) => element("span", { style: `top:${y(tick)}%` }, format(tick))));
  const labelOf = to - from > 2 * DAY ? day : clock;
  const xAxis = element("div", { class: "x", "aria-hidden": "true" }, ...times(from, to).map((time) => element("span", { style: `left:${x(time)}%` }, labelOf(time))));

  let at = null;
  const show = (index) => {
    at = index;
    const point = index === null ? null : points[index];
    tip.hidden = !point;
    cross.setAttribute("d", point ? `M${x(point.time)} 0V100` : "");
    if (!point) return;
    const rows = lines.map((line) => `${line.name}: ${line.value(point) === null ? "–" : format(line.value(point))}`);
    tip.style.left = `max(0px, min(${x(point.time)}% + .5rem, 100% - 11rem))`;
    tip.replaceChildren(element("b", {}, `${day(point.time)}, ${clock(point.time)}`), ...rows.map((row) => element("span", {}, row)));
    spoken.textContent = `${day(point.time)}, ${clock(point.time)}: ${rows.join(", ")}`;
  };
  plot.onpointermove = plot.onpointerdown = (event) => {
    const { left, width } = plot.getBoundingClientRect();
    const wanted = (100 * (event.clientX - left)) / width;
    let best = 0;
    points.forEach((point, i) => { if (Math.abs(x(point.time) - wanted) < Math.abs(x(points[best].time) - wanted)) best = i; });
    show(best);
  };
  plot.onpointerleave = plot.onblur = () => show(null);
  plot.onkeydown = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    show(at === null ? points.length - 1 : Math.min(points.length - 1, Math.max(0, at + by)));
  };
  box.replaceChildren(element("div", { class: "legend" }, ...lines.map((line) => element("span", {}, element("i", { class: line.class }), line.name))), element("div", { class: "frame" }, yAxis, plot, xAxis), spoken);
}
