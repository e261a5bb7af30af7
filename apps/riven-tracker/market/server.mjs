// A stand-in for the market's API: made-up listings that wander from minute to minute, and faults on demand. Every answer says that it is
// one (x-stand-in), so that the page can.
//
//     node market/server.mjs [--port 8790]
//     curl -X POST localhost:8790/control -d '{"fail":0.2,"status":503,"delayMs":50}'
//
// control: fail (share of requests that fail), status (with which, or "garbage", "hang"), retryAfter (seconds), delayMs, together (nobody is
// answered before so many are there at once).
import http from "node:http";
import { pathToFileURL } from "node:url";

/** A number in [0, 1) that depends on nothing but its arguments. */
function chance(...parts) {
  let hash = 0x811c9dc5;
  for (const char of parts.join("/")) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193) >>> 0;
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32;
}

/** What a weapon costs at a minute: a level of its own, slow waves, a little noise. */
export function level(slug, minute) {
  const base = 15 + 400 * chance(slug, "base") ** 3;
  const wave = Math.sin((minute / 1440) * 2 * Math.PI + 6 * chance(slug, "phase")) * 0.15 + Math.sin(minute / 97 + 6 * chance(slug, "fast")) * 0.05;
  return base * (1 + wave + 0.04 * (chance(slug, minute) - 0.5));
}

export function auctions(slug, minute) {
  const count = Math.floor(60 * chance(slug, "count") ** 2);
  return Array.from({ length: count }, (_, i) => {
    const bait = chance(slug, i, "bait") < 0.03;
    const price = Math.max(1, Math.round(level(slug, minute) * (bait ? 0.1 : 1 + 0.06 * i + 0.1 * chance(slug, i, "price"))));
    return {
      id: `${slug}-${i}`,
      buyout_price: chance(slug, i, "direct") < 0.9 ? price : null,
      starting_price: price,
      closed: false,
      visible: true,
      private: false,
      platform: "pc",
      item: { type: "riven", weapon_url_name: slug, mod_rank: 8, re_rolls: Math.floor(20 * chance(slug, i, "rolls")) },
      owner: { ingame_name: `trader${Math.floor(1e6 * chance(slug, i, "name"))}`, status: ["ingame", "online", "offline"][Math.floor(3 * chance(slug, i, minute >> 3))] },
    };
  });
}

/** Starts it. `asked` counts the requests per weapon, `load.most` is how many were there at once; `control` holds the faults. */
export function startMarket(port = 0) {
  const control = { fail: 0, status: 503, retryAfter: null, delayMs: 0, together: 0 };
  const asked = new Map();
  const load = { now: 0, most: 0 };
  const held = [];
  const answer = (response, status, value, headers = {}) => {
    response.writeHead(status, { "content-type": "application/json", "x-stand-in": "true", ...headers });
    response.end(typeof value === "string" ? value : JSON.stringify(value));
  };
  const server = http.createServer((request, response) => {
    const url = new URL(request.url, "http://market");
    if (url.pathname === "/control") {
      let text = "";
      request.on("data", (part) => { text += part; }).on("end", () => {
        Object.assign(control, text ? JSON.parse(text) : {});
        answer(response, 200, control);
      });
      return;
    }
    const slug = url.searchParams.get("weapon_url_name");
    if (!url.pathname.endsWith("/auctions/search") || !slug) return answer(response, 404, { error: "app.errors.not_found" });
    asked.set(slug, (asked.get(slug) ?? 0) + 1);
    load.most = Math.max(load.most, ++load.now);
    response.on("close", () => { load.now--; });
    held.push(() => {
      if (Math.random() >= control.fail) return answer(response, 200, { payload: { auctions: auctions(slug, Math.floor(Date.now() / 60_000)) } });
      if (control.status === "hang") return;
      if (control.status === "garbage") return answer(response, 200, "<html>down for maintenance");
      answer(response, control.status, { error: "app.errors.unavailable" }, control.retryAfter === null ? {} : { "retry-after": String(control.retryAfter) });
    });
    if (load.now >= control.together) for (const reply of held.splice(0)) setTimeout(reply, control.delayMs);
  });
  return new Promise((resolve, reject) => {
    server.on("error", reject);
    server.listen(port, "127.0.0.1", () =>
      resolve({ url: `http://127.0.0.1:${server.address().port}/v1`, control, asked, load, stop: () => new Promise((done) => { server.closeAllConnections(); server.close(done); }) }));
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const at = process.argv.indexOf("--port");
  const market = await startMarket(at < 0 ? 8790 : Number(process.argv[at + 1]));
  console.log(`market stand-in on ${market.url}`);
}
