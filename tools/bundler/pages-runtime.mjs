// What stands behind a Pages project's `functions/` when it runs: the entry that pages.mjs makes calls serve().
//
// A request passes the middleware of every folder on its way, from the outermost inwards, then the
// function whose route fits best, then the assets; each of them decides by next() whether it goes on.

/** A route's segments as an expression: `:name` one segment, `:name*` any number of them. */
function pattern(route, whole) {
  const names = [];
  let source = "";
  for (const segment of route.split("/").filter((text) => text !== "")) {
    const [, name, many] = /^:(.+?)(\*?)$/.exec(segment) ?? [];
    if (name === undefined) {
      source += "/" + segment.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&");
      continue;
    }
    names.push({ name, many: many === "*" });
    source += many === "*" ? "(?:/(.+?))?" : "/([^/]+?)";
  }
  // bounded: a path, of url_bytes at most
  return { expression: new RegExp(`^(${source})${whole ? "/?$" : "(?=/|$)"}`, "i"), names };
}

function match({ expression, names }, path) {
  const found = expression.exec(path);
  if (found === null) return null;
  const params = {};
  names.forEach(({ name, many }, i) => {
    const value = found[i + 2];
    if (value !== undefined) params[name] = many ? value.split("/").filter((text) => text !== "") : value;
  });
  return { params, path: found[1] === "" ? "/" : found[1] };
}

const fits = (route, method) => route.method === "" || route.method === method;

/** Handlers that a request passes, in order: {handler, params, path}. */
function* handlersFor(routes, request) {
  const { pathname } = new URL(request.url);
  for (const route of routes.toReversed()) {
    if (!route.middleware || !fits(route, request.method)) continue;
    const found = match(route.begins, pathname);
    if (found) for (const handler of [route.value].flat()) yield { handler, params: found.params, path: found.path };
  }
  for (const route of routes) {
    if (route.middleware || !fits(route, request.method)) continue;
    const found = match(route.is, pathname);
    const mounted = match(route.mounted, pathname);
    if (!found || !mounted) continue;
    for (const handler of [route.value].flat()) yield { handler, params: found.params, path: mounted.path };
    return;
  }
}

/** @param {{route: string, mount: string, method: string, middleware: boolean, value: any}[]} list best first */
export function serve(list) {
  const routes = list
    .filter(({ value }) => value !== undefined)
    .map((entry) => ({ ...entry, is: pattern(entry.route, true), begins: pattern(entry.route, false), mounted: pattern(entry.mount, false) }));
  return {
    async fetch(first, env, ctx) {
      let request = first;
      let data = {};
      const handlers = handlersFor(routes, request);
      const next = async (input, init) => {
        if (input !== undefined)
          request = new Request(input instanceof Request ? input : new URL(input, request.url), init);
        const { done, value } = handlers.next();
        if (done) return env.ASSETS.fetch(request);
        const context = {
          request: new Request(request.clone()),
          functionPath: value.path,
          next,
          params: value.params,
          get data() {
            return data;
          },
          set data(object) {
            if (object === null || typeof object !== "object") throw new Error("context.data must be an object");
            data = object;
          },
          env,
          waitUntil: ctx.waitUntil.bind(ctx),
          passThroughOnException: ctx.passThroughOnException.bind(ctx),
        };
        const response = await value.handler(context);
        if (!(response instanceof Response)) throw new Error("Your Pages function should return a Response");
        // Its headers can be changed, whoever made it.
        return new Response([101, 204, 205, 304].includes(response.status) ? null : response.body, response);
      };
      return next();
    },
  };
}
