// Data that comes over the network: loading, failed or there.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

/**
 * What `fetcher(signal)` resolves with: {data, error, loading, reload}. It runs again when `deps` change, every `every`
 * milliseconds if given, and with reload(); what was there stays until then, but not when `deps` have changed.
 */
export function useLoad(fetcher, deps, { every } = {}) {
  const [state, setState] = useState({ loading: true });
  const [turn, setTurn] = useState(0);
  const shown = useRef();
  useEffect(() => {
    const abort = new AbortController();
    const key = JSON.stringify(deps);
    if (shown.current !== key) setState({ loading: true });
    else setState((state) => ({ ...state, loading: true }));
    let timer;
    const run = async () => {
      try {
        const data = await fetcher(abort.signal);
        if (abort.signal.aborted) return;
        shown.current = key;
        setState({ data, loading: false });
      } catch (error) {
        if (abort.signal.aborted) return;
        setState((state) => ({ data: shown.current === key ? state.data : undefined, error, loading: false }));
      }
      if (every) timer = setTimeout(() => (document.hidden ? (timer = setTimeout(run, every)) : run()), every);
    };
    run();
    return () => { abort.abort(); clearTimeout(timer); };
  }, [...deps, turn]);
  const reload = useCallback(() => setTurn((turn) => turn + 1), []);
  useReloadKey(reload);
  return { ...state, reload };
}

/**
 * Pages of a list: `fetchPage(cursor, signal)` gives {items, cursor}; {items, cursor, error, loading, more, reload}. When `deps` change
 * the old items stay, with `stale`, until the new ones are there: nothing flickers while one types.
 */
export function usePages(fetchPage, deps) {
  const [state, setState] = useState({ items: [], loading: true });
  const [turn, setTurn] = useState(0);
  const current = useRef();
  const load = async (abort, before, cursor) => {
    setState((state) => ({ items: state.items, loading: true, stale: !before }));
    try {
      const page = await fetchPage(cursor, abort.signal);
      if (abort.signal.aborted) return;
      setState((state) => ({ ...page, items: before ? [...state.items, ...page.items] : page.items, cursor: page.cursor ?? null, loading: false }));
    } catch (error) {
      if (!abort.signal.aborted) setState((state) => ({ items: before ? state.items : [], error, loading: false }));
    }
  };
  useEffect(() => {
    const abort = new AbortController();
    current.current = abort;
    load(abort, false);
    return () => abort.abort();
  }, [...deps, turn]);
  const more = () => { if (state.cursor && !state.loading) load(current.current, true, state.cursor); };
  const reload = useCallback(() => setTurn((turn) => turn + 1), []);
  useReloadKey(reload);
  return { ...state, more, reload };
}

const reloads = new Set();
/** Everything that is shown is loaded again: the key r. */
export const reloadAll = () => { for (const reload of reloads) reload(); };
function useReloadKey(reload) {
  useEffect(() => { reloads.add(reload); return () => reloads.delete(reload); }, [reload]);
}

/** A value that follows `value` when it has not changed for a while. */
export function useSettled(value, milliseconds = 150) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
