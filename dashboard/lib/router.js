// Where we are: the part of the address behind #, as a path and a query.
import { useEffect, useState } from "preact/hooks";

function parse() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean).map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  return { path: parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a place: href(["objects"], {q: "x"}). */
export function href(path, query = {}) {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#/${path.map(encodeURIComponent).join("/")}${text.size ? `?${text}` : ""}`;
}

export function go(path, query, { replace = false } = {}) {
  const target = href(path, query);
  if (replace) {
    history.replaceState(null, "", target);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = target;
  }
}

export function useRoute() {
  const [route, setRoute] = useState(parse);
  useEffect(() => {
    const listen = () => setRoute(parse());
    window.addEventListener("hashchange", listen);
    return () => window.removeEventListener("hashchange", listen);
  }, []);
  return route;
}
