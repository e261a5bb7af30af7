// The page: a table of the latest ticks, and the trend of one weapon.
const $ = (id) => document.getElementById(id);
const state = { ticks: [], lines: {}, by: "bottom_price", down: true, search: "", slug: null, range: "24h" };

const get = async (path) => {
  const response = await fetch(path);
  const value = await response.json();
  if (!response.ok) throw new Error(value.error);
  return value;
};
const nameOf = (slug) => slug.replaceAll("_", " ");
const price = (value) => (value === null ? "–" : value.toLocaleString(undefined, { maximumFractionDigits: 1 }));
function age(ts) {
  const minutes = Math.max(0, Math.round((Date.now() - ts) / 60_000));
  return minutes < 60 ? `${minutes} min` : minutes < 2880 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} d`;
}

/** An SVG path through points of [0..1] × [0..1], scaled. */
const pathOf = (points, width, height) => points.map(([x, y], i) => `${i ? "L" : "M"}${(x * width).toFixed(1)} ${((1 - y) * height).toFixed(1)}`).join("");

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function sparkline(prices = []) {
  const low = Math.min(...prices), high = Math.max(...prices), last = Math.max(1, prices.length - 1);
  const points = prices.map((value, i) => [i / last, high === low ? 0.5 : (value - low) / (high - low)]);
  return svg("svg", { class: "spark", viewBox: "-2 -2 104 24", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path", { d: pathOf(points, 100, 20) }));
}

function row(tick) {
  const tr = document.createElement("tr");
  const cell = (content, name = "") => {
    const td = document.createElement("td");
    td.className = name;
    td.append(content);
    tr.append(td);
  };
  cell(Object.assign(document.createElement("button"), { textContent: nameOf(tick.weapon_slug) }));
  cell(price(tick.bottom_price), "number");
  cell(price(tick.min_price), "number");
  cell(price(tick.p5_price), "number wide");
  cell(price(tick.p10_price), "number wide");
  cell(String(tick.active_count), "number");
  cell(sparkline(state.lines[tick.weapon_slug]), "wide");
  cell(age(tick.ts), "number wide");
  tr.onclick = () => open(tick.weapon_slug);
  return tr;
}

function showTable() {
  const { by, down, search } = state;
  const shown = state.ticks.filter((tick) => nameOf(tick.weapon_slug).includes(search));
  // What has no price comes last, whichever way the rest is sorted.
  const order = (a, b) => (a[by] === null || b[by] === null ? (a[by] === null) - (b[by] === null) : (a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : 0) * (down ? -1 : 1));
  $("rows").replaceChildren(...shown.sort(order).map(row));
  $("empty").hidden = state.ticks.length > 0;
  for (const th of document.querySelectorAll("th[data-by]")) th.setAttribute("aria-sort", th.dataset.by === by ? (down ? "descending" : "ascending") : "none");
}

async function refresh() {
  try {
    const [snapshot, spark] = await Promise.all([get("/api/snapshot"), get("/api/sparklines")]);
    state.ticks = snapshot.ticks;
    state.lines = spark.lines;
    $("status").textContent = `${snapshot.ticks.length} weapons on ${snapshot.platform.toUpperCase()}, as of ${new Date(snapshot.updatedAt).toLocaleTimeString()}`;
    showTable();
  } catch (error) {
    $("status").textContent = `Not up to date: ${error.message}`;
  }
}

function drawTrend({ from, to, points }) {
  const priced = points.filter((point) => point.bottom_price !== null);
  $("chart").replaceChildren();
  if (priced.length === 0) return void ($("summary").textContent = "Nothing was for sale in this time.");
  const high = Math.max(...priced.map((point) => point.bottom_price)) * 1.08;
  const at = (point, value) => [(point.ts - from) / (to - from), value / high];
  const line = pathOf(priced.map((point) => at(point, point.bottom_price)), 800, 260);
  const [first, last] = [priced[0], priced.at(-1)].map((point) => (at(point, 0)[0] * 800).toFixed(1));
  $("chart").append(
    svg("path", { class: "area", d: `${line}L${last} 260L${first} 260Z` }),
    svg("path", { class: "low", d: pathOf(priced.map((point) => at(point, point.min_price)), 800, 260) }),
    svg("path", { class: "line", d: line }),
    svg("path", { class: "now", d: `${pathOf([at(priced.at(-1), priced.at(-1).bottom_price)], 800, 260)}h0` }),
  );
  const prices = priced.map((point) => point.bottom_price);
  $("summary").textContent = `${price(prices.at(-1))} platinum now, between ${price(Math.min(...prices))} and ${price(Math.max(...prices))} in this time. Dashed: the cheapest offer.`;
}

async function open(slug = state.slug, range = state.range) {
  Object.assign(state, { slug, range });
  $("weapon").textContent = nameOf(slug);
  $("trend").hidden = false;
  for (const button of $("ranges").children) button.setAttribute("aria-pressed", String(button.dataset.range === range));
  try {
    drawTrend(await get(`/api/trends/${slug}?range=${range}&points=200`));
  } catch (error) {
    $("summary").textContent = error.message;
  }
  $("trend").scrollIntoView({ block: "nearest" });
}

document.querySelector("thead").onclick = ({ target }) => {
  const by = target.closest("th")?.dataset.by;
  if (!by) return;
  Object.assign(state, { by, down: state.by === by ? !state.down : by !== "weapon_slug" });
  showTable();
};
$("search").oninput = ({ target }) => {
  state.search = target.value.trim().toLowerCase();
  showTable();
};
$("ranges").onclick = ({ target }) => target.dataset.range && open(state.slug, target.dataset.range);
$("close").onclick = () => { $("trend").hidden = true; };
refresh();
setInterval(refresh, 30_000);
