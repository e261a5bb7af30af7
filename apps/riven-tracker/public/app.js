// The page: a table of the latest ticks, the trend of one weapon, and what could not be sampled.
import { drawChart, svg } from "./chart.js";

const $ = (id) => document.getElementById(id);
const state = { ticks: [], lines: {}, by: "bottom_price", down: true, search: "", slug: null, range: "24h", loaded: false };

/** JSON of the server, or an error in a sentence. */
async function get(path) {
  let response;
  try {
    response = await fetch(path);
  } catch {
    throw new Error("the server does not answer.");
  }
  const value = await response.json().catch(() => null);
  if (!response.ok || value === null) throw new Error(value?.error ?? `the server answered with ${response.status}.`);
  return value;
}
const nameOf = (slug) => slug.replaceAll("_", " ");
const price = (value) => (value === null ? "–" : value.toLocaleString(undefined, { maximumFractionDigits: 1 }));
const plural = (n, one) => `${n.toLocaleString()} ${n === 1 ? one : `${one}s`}`;
function age(ts) {
  const minutes = Math.max(0, Math.floor((Date.now() - Date.parse(ts)) / 60_000));
  return minutes < 60 ? `${minutes} min` : minutes < 2880 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} d`;
}

function sparkline(prices = []) {
  const low = Math.min(...prices), high = Math.max(...prices), last = Math.max(1, prices.length - 1);
  const path = prices.map((value, i) => `${i ? "L" : "M"}${((100 * i) / last).toFixed(1)} ${(20 - 20 * (high === low ? 0.5 : (value - low) / (high - low))).toFixed(1)}`).join("");
  return svg("svg", { class: "spark", viewBox: "-2 -2 104 24", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path", { d: prices.length === 1 ? `${path}h0` : path }));
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
  $("empty").hidden = !state.loaded || shown.length > 0;
  $("empty").textContent = state.ticks.length ? `No weapon is called “${search}”.` : "No weapon has been sampled yet. Five come every minute; the first within one. POST /admin/sample does it at once.";
  for (const th of document.querySelectorAll("th[data-by]")) th.setAttribute("aria-sort", th.dataset.by === by ? (down ? "descending" : "ascending") : "none");
}

function showHealth({ standIn, failuresLastHour, failures, hot, cold }) {
  $("stand-in").hidden = !standIn;
  $("failures").hidden = failuresLastHour === 0;
  $("failures").querySelector("summary").textContent = `${plural(failuresLastHour, "sample")} failed in the last hour, of ${plural(failures.length, "weapon")}. Their prices are from before.`;
  $("failures").querySelector("ul").replaceChildren(...failures.map(({ ts, weapon_slug, reason }) => Object.assign(document.createElement("li"), { textContent: `${nameOf(weapon_slug)}: ${reason} (${new Date(ts).toLocaleTimeString()})` })));
  state.listed = hot + cold;
}

async function refresh() {
  try {
    const [snapshot, spark, health] = await Promise.all([get("/api/snapshot"), get("/api/sparklines"), get("/api/health")]);
    state.ticks = Object.values(snapshot.latest);
    state.lines = spark.lines;
    state.loaded = true;
    showHealth(health);
    $("status").textContent = `${state.ticks.length} of ${plural(state.listed, "weapon")} on ${snapshot.platform.toUpperCase()}, as of ${new Date(snapshot.updatedAt).toLocaleTimeString()}`;
    $("status").className = "";
    showTable();
  } catch (error) {
    $("status").textContent = `${state.loaded ? "Not up to date" : "The prices could not be loaded"}: ${error.message}`;
    $("status").className = "bad";
  }
}

function drawTrend({ from, to, points }) {
  const priced = points.filter((point) => point.bottom_price !== null).map((point) => ({ ...point, time: Date.parse(point.ts) }));
  if (priced.length === 0) {
    $("chart").replaceChildren();
    $("summary").textContent = points.length ? "Nobody was selling in this time." : "It was not sampled in this time. Choose a longer one.";
    return;
  }
  drawChart($("chart"), {
    label: `Price of ${nameOf(state.slug)} in platinum`, points: priced, from, to, format: price,
    lines: [{ name: "index", class: "line", value: (point) => point.bottom_price }, { name: "cheapest", class: "low", value: (point) => point.min_price }],
  });
  const prices = priced.map((point) => point.bottom_price);
  $("summary").textContent = `${price(prices.at(-1))} platinum now, between ${price(Math.min(...prices))} and ${price(Math.max(...prices))} in this time.`;
}

async function open(slug = state.slug, range = state.range) {
  Object.assign(state, { slug, range });
  $("weapon").textContent = nameOf(slug);
  $("trend").hidden = false;
  for (const button of $("ranges").children) button.setAttribute("aria-pressed", String(button.dataset.range === range));
  try {
    drawTrend(await get(`/api/trends/${slug}?range=${range}&points=200`));
  } catch (error) {
    $("chart").replaceChildren();
    $("summary").textContent = `The trend could not be loaded: ${error.message}`;
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
