// The dashboard: which view is shown, how one gets to another, and the keys.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, hasToken, setToken, whenDenied } from "./lib/api.js";
import { reloadAll } from "./lib/load.js";
import { go, href, useRoute } from "./lib/router.js";
import { Button, dialog, Empty, Icon, Overlay } from "./ui/parts.jsx";
import { Cluster } from "./views/cluster.jsx";
import { Crons } from "./views/crons.jsx";
import { D1 } from "./views/d1.jsx";
import { Kv } from "./views/kv.jsx";
import { Logs } from "./views/logs.jsx";
import { ObjectView } from "./views/object.jsx";
import { Objects } from "./views/objects.jsx";
import { Overview } from "./views/overview.jsx";
import { Queues } from "./views/queues.jsx";
import { R2 } from "./views/r2.jsx";
import { Versions } from "./views/versions.jsx";
import { Workers } from "./views/workers.jsx";

// With g and its key one gets to each.
const views = [
  { id: "overview", key: "h", title: "Overview", view: Overview },
  { id: "cluster", key: "n", title: "Cluster", view: Cluster, only: "cluster" },
  { id: "workers", key: "w", title: "Workers", view: Workers },
  { id: "versions", key: "v", title: "Versions", view: Versions },
  { id: "logs", key: "l", title: "Logs", view: Logs },
  { id: "objects", key: "o", title: "Objects", group: "Data", view: Objects },
  { id: "d1", key: "d", title: "D1", group: "Data", view: D1 },
  { id: "kv", key: "k", title: "KV", group: "Data", view: Kv },
  { id: "r2", key: "r", title: "R2", group: "Data", view: R2 },
  { id: "queues", key: "q", title: "Queues", group: "Work", view: Queues },
  { id: "crons", key: "c", title: "Cron", group: "Work", view: Crons },
];
const inner = { object: { ...views.find(({ id }) => id === "objects"), view: ObjectView } };

// --- light and dark ---

const THEME = "cairn.theme";
function applyTheme() {
  const theme = localStorage.getItem(THEME);
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}
const isDark = () => (localStorage.getItem(THEME) ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
function switchTheme() {
  localStorage.setItem(THEME, isDark() ? "light" : "dark");
  applyTheme();
}

// --- keys ---

function moveRow(step) {
  const rows = [...document.querySelectorAll("main [data-row]")];
  const at = rows.indexOf(document.activeElement?.closest("[data-row]"));
  const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + step, 0), rows.length - 1)];
  if (next && next.tabIndex < 0) next.tabIndex = -1;
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function moveTab(step) {
  const tabs = [...document.querySelectorAll("[data-tabs] a")];
  const at = tabs.findIndex((tab) => tab.getAttribute("aria-current"));
  const next = tabs[(at + step + tabs.length) % tabs.length];
  if (next) location.hash = next.getAttribute("href");
}

const help = () => dialog((close) => (
  <div class="dialog-body">
    <h2>Keys</h2>
    <div class="keys">
      {[["/", "search"], ["j k", "next, previous row"], ["Enter", "open the row"], ["[ ]", "previous, next tab"], ["r", "load again"],
        ["Ctrl Enter", "run a query"], ["t", "light or dark"], ["Esc", "close, leave a field, go up"], ["?", "this list"],
        ...views.map(({ key, title }) => [`g ${key}`, title])].map(([keys, text]) => (
        <div key={keys}><span>{keys.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</span>{text}</div>))}
    </div>
    <div class="actions"><Button onClick={() => close()}>Close</Button></div>
  </div>
));

let afterG = 0; // when g was pressed: the next key says where to
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "Escape") {
    if (typing) typing.blur();
    else document.querySelector(".head .up")?.click();
    return;
  }
  if (typing) return;
  if (Date.now() - afterG < 1500) {
    afterG = 0;
    const view = views.find(({ key }) => key === event.key);
    if (view) { event.preventDefault(); go([view.id]); return; }
  }
  const action = {
    "/": () => document.querySelector("[data-search]")?.select(), j: () => moveRow(1), k: () => moveRow(-1), g: () => { afterG = Date.now(); },
    "[": () => moveTab(-1), "]": () => moveTab(1), r: reloadAll, t: switchTheme, "?": help,
  }[event.key];
  if (action) { event.preventDefault(); action(); }
}

// --- the page ---

function Login({ onDone }) {
  const [error, setError] = useState();
  const [busy, setBusy] = useState(false);
  const enter = async (event) => {
    event.preventDefault();
    const token = event.target.elements.token.value.trim();
    setBusy(true);
    try {
      await get("/api/namespaces", { token });
      setToken(token);
      onDone();
    } catch (error) {
      setError(error.status === 401 ? "That is not the token." : error.message);
      setBusy(false);
    }
  };
  return (
    <div class="login">
      <form onSubmit={enter}>
        <Logo />
        <label class="field">Token<input name="token" type="password" autocomplete="current-password" autofocus required /></label>
        {error && <p class="wrong" role="alert">{error}</p>}
        <button type="submit" class="button primary" disabled={busy}>Enter</button>
        <p class="hint">On the server's machine, <code>cairn dashboard</code> prints an address that needs no typing. The token is <code>CAIRN_ADMIN_TOKEN</code>, or what is in <code>admin.token</code> of the data directory.</p>
      </form>
    </div>
  );
}

function Logo() {
  return (
    <a class="logo" href="#/">
      <svg viewBox="0 0 32 32" aria-hidden="true"><ellipse cx="16" cy="25.5" rx="12" ry="4.5" /><ellipse cx="16.5" cy="17" rx="8.5" ry="4" /><ellipse cx="15.5" cy="9.5" rx="5.5" ry="3.5" /></svg>
      Cairn
    </a>
  );
}

/** Whether the server is a node of a cluster: what is `only` for one is shown then. */
function useCluster(known) {
  const [is, setIs] = useState(false);
  useEffect(() => {
    if (known) get("/api/cluster").then(({ member }) => setIs(member), (error) => setIs(error.status >= 500)); // its engine may be away
  }, [known]);
  return is;
}

function Sidebar({ current, open, cluster, onClose, onLeave }) {
  const shown = views.filter(({ only }) => !only || cluster);
  const groups = [...new Set(shown.map(({ group }) => group))];
  return (
    <aside class={open ? "open" : ""} onClick={(event) => event.target.closest("a") && onClose()}>
      <Logo />
      <nav>
        {groups.map((group) => (
          <div key={group}>
            {group && <h2>{group}</h2>}
            {shown.filter((view) => view.group === group).map(({ id, title, key }) => (
              <a key={id} href={href([id])} aria-current={current === id ? "page" : undefined} title={`g ${key}`}><Icon name={id} />{title}</a>
            ))}
          </div>
        ))}
      </nav>
      <div class="foot">
        <button type="button" title="Light or dark (t)" aria-label="Light or dark" onClick={switchTheme}><Icon name="sun" /></button>
        <button type="button" title="Keys (?)" aria-label="Keys" onClick={help}><Icon name="help" /></button>
        <button type="button" title="Forget the token" aria-label="Forget the token" onClick={onLeave}><Icon name="leave" /></button>
      </div>
    </aside>
  );
}

function App() {
  const route = useRoute();
  const [known, setKnown] = useState(hasToken);
  const [menu, setMenu] = useState(false);
  const cluster = useCluster(known);
  const leave = () => { setToken(null); setKnown(false); };
  useEffect(() => { whenDenied(leave); onToken = () => setKnown(true); }, []);
  if (!known) return <><Login onDone={() => setKnown(true)} /><Overlay /></>;
  const id = route.path[0] ?? views[0].id;
  const view = inner[id] ?? views.find((view) => view.id === id);
  const View = view?.view;
  return (
    <div class="shell">
      <div class="bar">
        <button type="button" aria-label="Menu" onClick={() => setMenu(!menu)}><Icon name={menu ? "close" : "menu"} /></button>
        <Logo />
      </div>
      <Sidebar current={view?.id} open={menu} cluster={cluster} onClose={() => setMenu(false)} onLeave={leave} />
      {menu && <div class="shade" onClick={() => setMenu(false)} />}
      <main>{View ? <View key={id} route={route} /> : <Empty title="There is no such view" />}</main>
      <Overlay />
    </div>
  );
}

/** `cairn dashboard` gives the token behind the #, which no server sees, and which does not stay there. */
function takeToken() {
  const given = /^#token=([^&]+)/.exec(location.hash);
  if (!given) return;
  setToken(decodeURIComponent(given[1]));
  history.replaceState(null, "", "#/");
  onToken();
}
let onToken = () => {};
takeToken();
window.addEventListener("hashchange", takeToken); // before the router's
applyTheme();
document.addEventListener("keydown", onKey);
render(<App />, document.getElementById("app"));
