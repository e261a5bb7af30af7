// immer: a draft of a nested state with maps, frozen results, patches there and back.
import { applyPatches, enableMapSet, enablePatches, produce, produceWithPatches } from "immer";

enableMapSet();
enablePatches();
const state = { users: new Map([["a", { name: "Ann", roles: new Set(["reader"]) }]]), log: [], untouched: { x: 1 } };

export default {
  fetch() {
    const [next, patches, inverse] = produceWithPatches(state, (draft) => {
      draft.users.get("a").roles.add("writer");
      draft.log.push("promoted");
    });
    const back = applyPatches(next, inverse);
    let frozen = "not frozen";
    try {
      "use strict";
      next.log.push("x");
    } catch (error) {
      frozen = error.constructor.name;
    }
    return Response.json({
      before: [...state.users.get("a").roles], after: [...next.users.get("a").roles], back: [...back.users.get("a").roles],
      shared: next.untouched === state.untouched, same: produce(state, () => {}) === state,
      patches: patches.map((p) => `${p.op} ${p.path.join("/")}`), frozen,
    });
  },
};
