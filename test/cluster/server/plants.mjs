// Somebody between clients and nodes who is not honest, as a proxy could be: what a campaign must find. Each does its wrong to one of thirty calls.
import { chain } from "./worker.mjs";

export const plants = {
  /** Acknowledges a write by himself, as the owner would have. */
  acknowledges: (honest) => {
    const last = new Map();
    return async (send, what, name, value) => {
      const state = last.get(name);
      if (what === "add" && state && !honest()) return { status: 200, value: { ...state, length: state.length + 1, hash: chain(state.hash, value) } };
      const answer = await send();
      if (["add", "state"].includes(what) && answer.status === 200) last.set(name, answer.value);
      return answer;
    };
  },
  /** Answers a read with what was answered before. */
  remembers: (honest) => {
    const first = new Map();
    return async (send, what, name) => {
      if (what === "state" && first.has(name) && !honest()) return { status: 200, value: first.get(name) };
      const answer = await send();
      if (what === "state" && answer.status === 200 && !first.has(name)) first.set(name, answer.value);
      return answer;
    };
  },
  /** Sends a write twice. */
  repeats: (honest) => async (send, what) => {
    if (what === "add" && !honest()) await send();
    return send();
  },
};

/** Puts one before a world's nodes. */
export function plant(world, name, random) {
  if (!plants[name]) throw new Error(`${name}: nothing of that name is planted; there are ${Object.keys(plants)}`);
  const send = world.try.bind(world), wrong = plants[name](() => random(30) !== 0);
  world.try = (node, target, more) => wrong(() => send(node, target, more), ...target.split("/").slice(1));
}
