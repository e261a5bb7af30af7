// What drivers of the ledger (run.mjs) write with: each request is one write to one place, which a later one looks at.
import { DurableObject } from "cloudflare:workers";

export class Cell extends DurableObject {
  put(id, size) { this.ctx.storage.kv.put(id, "x".repeat(size)); }
  delete(id) { this.ctx.storage.kv.delete(id); }
  ids() { return [...this.ctx.storage.kv.list()].map(([id]) => id); }
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(socket, text) {
    const { id, size } = JSON.parse(text);
    this.put(id, size);
    socket.send(id); // leaves when the write is durable
  }
}

/** Of one id each: its alarm, and whether it has fired. */
export class Clock extends DurableObject {
  arm(time) {
    this.ctx.storage.kv.put("armed", time);
    return this.ctx.storage.setAlarm(time);
  }
  alarm() { this.ctx.storage.kv.put("fired", true); }
  async state() {
    const { kv } = this.ctx.storage;
    return { armed: kv.get("armed") ?? null, fired: kv.get("fired") ?? false, alarm: await this.ctx.storage.getAlarm() };
  }
}

const all = async (list, cursor) => {
  const names = [];
  do {
    const page = await list(cursor);
    names.push(...page.names);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return names;
};

const places = {
  object: {
    put: (env, id, size, cell) => env.CELL.getByName(cell).put(id, size),
    delete: (env, id, size, cell) => env.CELL.getByName(cell).delete(id),
    ids: (env, cell) => env.CELL.getByName(cell).ids(),
  },
  kv: {
    put: (env, id, size) => env.KV.put(id, "x".repeat(size)),
    delete: (env, id) => env.KV.delete(id),
    ids: (env) => all(async (cursor) => {
      const { keys, list_complete, cursor: next } = await env.KV.list({ cursor });
      return { names: keys.map(({ name }) => name), cursor: list_complete ? undefined : next };
    }),
  },
  d1: {
    put: (env, id, size) => env.DB.batch([ // both or none
      env.DB.prepare("INSERT INTO items (id, text) VALUES (?, ?)").bind(id, "x".repeat(size)),
      env.DB.prepare("INSERT INTO ids (id) VALUES (?)").bind(id)]),
    delete: (env, id) => env.DB.batch([env.DB.prepare("DELETE FROM items WHERE id = ?").bind(id), env.DB.prepare("DELETE FROM ids WHERE id = ?").bind(id)]),
    async ids(env) {
      const [items, ids] = await env.DB.batch([env.DB.prepare("SELECT id FROM items ORDER BY id"), env.DB.prepare("SELECT id FROM ids ORDER BY id")]);
      const [one, two] = [items, ids].map(({ results }) => results.map(({ id }) => id));
      if (one.join() !== two.join()) throw new Error(`half of a batch is there: ${one} and ${two}`);
      return one;
    },
  },
  r2: {
    put: (env, id, size) => env.BUCKET.put(id, "x".repeat(size), { customMetadata: { size: String(size) } }),
    delete: (env, id) => env.BUCKET.delete(id),
    ids: (env) => all(async (cursor) => {
      const page = await env.BUCKET.list({ cursor, include: ["customMetadata"] });
      for (const { key, customMetadata } of page.objects) { // whole bodies, or none
        const body = await (await env.BUCKET.get(key)).text();
        if (body !== "x".repeat(Number(customMetadata.size))) throw new Error(`the body of ${key} has ${body.length} bytes of ${customMetadata.size}`);
      }
      return { names: page.objects.map(({ key }) => key), cursor: page.truncated ? page.cursor : undefined };
    }),
  },
  queue: {
    put: (env, id, size) => env.QUEUE.send({ id, text: "x".repeat(size) }),
    ids: (env) => env.CELL.getByName("delivered").ids(),
  },
  alarm: {
    put: (env, id, size, time) => env.CLOCK.getByName(id).arm(Number(time)),
    ids: (env, ids) => Promise.all(ids.split(",").map((id) => env.CLOCK.getByName(id).state())),
  },
};

export default {
  async fetch(request, env) {
    const [place, verb, ...args] = new URL(request.url).pathname.split("/").slice(1);
    try {
      if (place === "setup") return Response.json(await env.DB.exec("CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY, text TEXT); \nCREATE TABLE IF NOT EXISTS ids (id TEXT PRIMARY KEY);"));
      if (place === "socket") return env.CELL.getByName(args[0]).fetch(request);
      if (place === "backlog") return Response.json((await env.QUEUE.metrics()).backlogCount);
      if (verb === "ids") return Response.json(await places[place].ids(env, ...args));
      const [id, size, ...rest] = args;
      await places[place][verb](env, id, Number(size), ...rest);
      return new Response("ok");
    } catch (error) {
      return new Response(String(error?.message ?? error), { status: 500 });
    }
  },
  async queue(batch, env) {
    for (const { body } of batch.messages) await env.CELL.getByName("delivered").put(body.id, 1);
  },
};
