// The small parts that views are made of.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as format from "../lib/format.js";

export function Icon({ name }) {
  const paths = {
    overview: "M3 12l4-5 4 3 6-7M3 17h14",
    cluster: "M10 3a2 2 0 1 1 0 4 2 2 0 0 1 0-4zM4.500 13a2 2 0 1 1 0 4 2 2 0 0 1 0-4zM15.500 13a2 2 0 1 1 0 4 2 2 0 0 1 0-4zM9 7l-3.500 6M11 7l3.500 6M6.500 15h7",
    workers: "M4 4h12v5H4zM4 11h12v5H4zM7 6.5h.01M7 13.5h.01",
    objects: "M10 2.5l6.5 3.75v7.5L10 17.5l-6.5-3.75v-7.5zM3.5 6.25L10 10l6.5-3.75M10 10v7.5",
    d1: "M4 5c0-1.4 2.7-2.5 6-2.5S16 3.600 16 5v10c0 1.4-2.700 2.500-6 2.500S4 16.400 4 15zM4 5c0 1.400 2.700 2.500 6 2.500S16 6.400 16 5M4 10c0 1.400 2.700 2.500 6 2.500s6-1.100 6-2.500",
    kv: "M12.500 3.500a4 4 0 1 1-3 6.600L4 15.500V17h3v-2h2v-2l1.800-1.800M13.500 6.500h.01",
    r2: "M3.500 5h13l-1.500 12H5zM3.500 5c0-1.200 2.900-2 6.500-2s6.500.8 6.500 2",
    queues: "M3 5h14M3 10h14M3 15h8M14 12.500l3 2.500-3 2.500",
    crons: "M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM10 6v4l3 2",
    logs: "M4 4h12M4 8h8M4 12h12M4 16h6",
    versions: "M6 3v14M6 7c0 4 8 2 8 6v4M14 3v4M4 5l2-2 2 2M12 15l2 2 2-2",
    sun: "M10 6.500a3.500 3.500 0 1 1 0 7 3.500 3.500 0 0 1 0-7zM10 2v2M10 16v2M2 10h2M16 10h2M4.300 4.300l1.400 1.400M14.300 14.300l1.400 1.400M4.300 15.700l1.400-1.400M14.300 5.700l1.400-1.400",
    moon: "M16 12.200A6.500 6.500 0 0 1 7.800 4a6.500 6.500 0 1 0 8.200 8.200z",
    help: "M7.500 7.500a2.500 2.500 0 1 1 3.500 2.300c-.7.300-1 .8-1 1.700M10 14.500h.01M10 2.500a7.500 7.500 0 1 1 0 15 7.500 7.500 0 0 1 0-15z",
    leave: "M8 3H4v14h4M8 10h9M14 7l3 3-3 3",
    menu: "M3 5h14M3 10h14M3 15h14",
    close: "M5 5l10 10M15 5L5 15",
    reload: "M16 10a6 6 0 1 1-2-4.500M16 3v4h-4",
    search: "M8.500 3a5.500 5.500 0 1 1 0 11 5.500 5.500 0 0 1 0-11zM13 13l4 4",
  };
  return <svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d={paths[name]} /></svg>;
}

/** The head of a view: where it is, its name, and what can be done. */
export function Head({ title, up, note, children }) {
  useEffect(() => { document.title = `${title} · Cairn`; }, [title]);
  return (
    <header class="head">
      <div class="head-text">
        {up && <a class="up" href={up[1]}>{up[0]}</a>}
        <h1>{title}</h1>
        {note && <span class="note">{note}</span>}
      </div>
      <div class="head-tools">{children}</div>
    </header>
  );
}

/** A button whose work is shown while it runs; failures are toasts. */
export function Button({ onClick, children, kind = "", disabled, title, type = "button" }) {
  const [busy, setBusy] = useState(false);
  const mounted = useRef(true);
  useEffect(() => () => { mounted.current = false; }, []);
  const run = async (event) => {
    if (!onClick) return;
    const result = onClick(event);
    if (!(result instanceof Promise)) return;
    setBusy(true);
    try { await result; } catch (error) { if (error.name !== "AbortError") toast(error.message, "bad"); }
    if (mounted.current) setBusy(false);
  };
  return <button type={type} class={`button ${kind}`} disabled={disabled || busy} aria-busy={busy} title={title} onClick={run}>{children}</button>;
}

export function Search({ value, onInput, placeholder }) {
  return (
    <label class="search">
      <Icon name="search" />
      <input type="search" data-search value={value} placeholder={placeholder} aria-label={placeholder} spellcheck={false} autocomplete="off" onInput={(event) => onInput(event.target.value)} />
      <kbd>/</kbd>
    </label>
  );
}

export function Select({ value, onChange, options, label }) {
  return (
    <select class="select" value={value} aria-label={label} onChange={(event) => onChange(event.target.value)}>
      {options.map(([key, text]) => <option key={key} value={key} selected={key === value}>{text}</option>)}
    </select>
  );
}

export function Toggle({ checked, onChange, children }) {
  return <label class="toggle"><input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />{children}</label>;
}

export function Badge({ kind = "", children }) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

/** A time, written as how long ago; the exact one is its title. */
export function Time({ ms, exact = false }) {
  if (ms === null || ms === undefined) return <span class="faint">–</span>;
  return <time dateTime={new Date(ms).toISOString()} title={format.time(ms, true)}>{exact ? format.time(ms) : format.ago(ms)}</time>;
}

export function Copy({ text, children }) {
  const copy = async (event) => {
    event.preventDefault();
    event.stopPropagation();
    try { await navigator.clipboard.writeText(text); toast("copied"); } catch { toast("this browser does not let the page copy", "bad"); }
  };
  return <button type="button" class="copy" title="Copy" onClick={copy}>{children ?? text}</button>;
}

/** What is shown in place of content: an error with a way to try again, nothing there, or still loading. */
export function Trouble({ error, retry }) {
  return (
    <div class="state bad" role="alert">
      <strong>{error.status === 404 ? "Not there" : error.status === 0 ? "No answer" : "That did not work"}</strong>
      <p>{error.message}</p>
      {retry && <Button onClick={() => retry()}>Try again</Button>}
    </div>
  );
}
/** Versions that should serve and do not: [{text, version, wayBack}]. */
export function Failures({ of }) {
  return of.map(({ text, version, wayBack }) => (
    <div key={version} class="state bad" role="alert">
      <strong>{version ? `Version ${version.slice(0, 8)} does not serve` : "Does not serve"}</strong>
      <p>{text}</p>
      {wayBack && <p class="soft">{wayBack}</p>}
    </div>
  ));
}
export function Empty({ title, children }) {
  return <div class="state"><strong>{title}</strong>{children && <p>{children}</p>}</div>;
}
export function Loading({ rows = 6 }) {
  return <div class="skeleton" role="status" aria-label="Loading">{Array.from({ length: rows }, (_, i) => <i key={i} />)}</div>;
}
/** Shows `children(data)` when it is there. */
export function Loaded({ of, rows, children }) {
  if (of.data !== undefined) return <>{of.error && <Trouble error={of.error} retry={of.reload} />}{children(of.data)}</>;
  return of.error ? <Trouble error={of.error} retry={of.reload} /> : <Loading rows={rows} />;
}

/**
 * A table. A column: {title, cell(row), sort (its name in `order`), and how it looks: right, wide, mono, minor (not on a phone)}. Rows open with a click, Enter or, where they have
 * an address (`link`), as a link does. On a phone every row is a few lines, its columns one after the other with their titles.
 */
export function Table({ columns, rows, rowKey, link, onOpen, order, onOrder, stale, caption }) {
  const open = (row, event) => {
    if (event.defaultPrevented || event.target.closest("button, input, select, a")) return;
    if (String(getSelection())) return;
    if (onOpen) onOpen(row);
    else if (link) location.hash = link(row);
  };
  const style = (column) => ["right", "wide", "mono", "minor"].filter((name) => column[name]).join(" ");
  const direction = (column) => (order?.by !== column.sort ? undefined : order.desc ? "descending" : "ascending");
  return (
    <div class={`table-box stack ${stale ? "stale" : ""}`}>
      <table>
        {caption && <caption>{caption}</caption>}
        <thead><tr>{columns.map((column) => (
          <th key={column.title} scope="col" class={`${style(column)} ${column.sort && onOrder ? "sorts" : ""}`} aria-sort={column.sort && direction(column)}>
            {column.sort && onOrder ? <button type="button" onClick={() => onOrder(column.sort)}>{column.title}</button> : column.title}
          </th>))}
        </tr></thead>
        <tbody>{rows.map((row, i) => (
          <tr key={rowKey ? rowKey(row) : i} data-row tabIndex={link || onOpen ? 0 : undefined} class={link || onOpen ? "opens" : ""}
            onClick={(event) => (link || onOpen) && open(row, event)}
            onKeyDown={(event) => { if (event.key === "Enter" && event.target === event.currentTarget) open(row, event); }}>
            {columns.map((column, k) => {
              const content = column.cell(row);
              return <td key={column.title} class={style(column)} data-title={column.title}>
                {k === 0 && link ? <a href={link(row)} tabIndex={-1}>{content}</a> : content}
              </td>;
            })}
          </tr>))}
        </tbody>
      </table>
    </div>
  );
}

/** A table of pages (usePages): the next one comes when its end is reached. */
export function PagedTable({ pages, empty, ...table }) {
  const end = useRef();
  useEffect(() => {
    if (!end.current || !pages.cursor) return undefined;
    const observer = new IntersectionObserver(([entry]) => entry.isIntersecting && pages.more(), { rootMargin: "300px" });
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [pages.cursor]);
  if (pages.error && !pages.items.length) return <Trouble error={pages.error} retry={pages.reload} />;
  if (pages.loading && !pages.items.length) return <Loading rows={10} />;
  if (!pages.items.length) return empty;
  return (
    <>
      <Table rows={pages.items} stale={pages.stale} {...table} />
      <div ref={end} class="more">
        {pages.error ? <Trouble error={pages.error} retry={pages.reload} />
          : pages.cursor ? <Button onClick={() => pages.more()}>Load more</Button>
          : pages.loading && !pages.stale ? "Loading…" : pages.items.length > 20 ? `${format.count(pages.items.length)}, that is all` : ""}
      </div>
    </>
  );
}

export function Tabs({ tabs, current, link }) {
  return (
    <nav class="tabs" data-tabs>
      {tabs.map(([key, title, note]) => (
        <a key={key} href={link(key)} aria-current={key === current ? "page" : undefined}>{title}{note !== undefined && note !== null && <span class="note">{note}</span>}</a>
      ))}
    </nav>
  );
}

/** Names and values. */
export function Facts({ items }) {
  return <dl class="facts">{items.filter(Boolean).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

// --- messages and dialogs: one place on the page shows them ---

let show = () => {};
let nextId = 1;
/** A short message at the corner. */
export function toast(text, kind = "good") {
  show((state) => ({ ...state, toasts: [...state.toasts.slice(-3), { id: nextId++, text, kind }] }));
}
const closeDialog = () => show((state) => ({ ...state, dialog: null }));

/**
 * I1: what somebody types stays until they change it. A page is drawn again at any time (a message goes, something has loaded), and then a
 * `value` is put back into its field; so it is either what was typed last (a state that onInput sets), or a `defaultValue`.
 */

/** Opens a dialog; `render(close)` gives its content. Resolves with what close() is called with; Escape gives undefined. */
export function dialog(render, { wide = false } = {}) {
  return new Promise((resolve) => {
    const close = (value) => { closeDialog(); resolve(value); };
    show((state) => ({ ...state, dialog: { render, close, wide } }));
  });
}

/** Asks before something that cannot be taken back lightly. With `type`, that text must be typed first. */
export function confirm({ title, text, action, type }) {
  return dialog((close) => <Confirm {...{ title, text, action, type, close }} />);
}
function Confirm({ title, text, action, type, close }) {
  const [typed, setTyped] = useState("");
  const ready = !type || typed === type;
  return (
    <form class="dialog-body" onSubmit={(event) => { event.preventDefault(); if (ready) close(true); }}>
      <h2>{title}</h2>
      <div class="text">{text}</div>
      {type && <label class="field"><span>Type <code>{type}</code> to go on</span><input value={typed} data-focus spellcheck={false} onInput={(event) => setTyped(event.target.value)} /></label>}
      <div class="actions">
        <Button onClick={() => close(false)}>Cancel</Button>
        <button type="submit" class="button danger" disabled={!ready} data-focus={!type || undefined}>{action}</button>
      </div>
    </form>
  );
}

export function Overlay() {
  const [state, setState] = useState({ toasts: [], dialog: null });
  const box = useRef();
  show = setState;
  const last = state.toasts.at(-1)?.id;
  useEffect(() => {
    if (!last) return undefined;
    const timer = setTimeout(() => setState((state) => ({ ...state, toasts: state.toasts.filter(({ id }) => id > last) })), 5000);
    return () => clearTimeout(timer);
  }, [last]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !state.dialog) return;
    if (!element.open) element.showModal();
    (element.querySelector("[data-focus]") ?? element.querySelector("textarea, input:not([type=checkbox]), select") ?? element).focus();
  }, [state.dialog]);
  return (
    <>
      {state.dialog && (
        <dialog ref={box} class={state.dialog.wide ? "wide" : ""} onCancel={(event) => { event.preventDefault(); state.dialog.close(); }}
          onClick={(event) => event.target === box.current && state.dialog.close()}>
          {state.dialog.render(state.dialog.close)}
        </dialog>
      )}
      <div class="toasts" role="status">{state.toasts.map(({ id, text, kind }) => <div key={id} class={`toast ${kind}`}>{text}</div>)}</div>
    </>
  );
}
