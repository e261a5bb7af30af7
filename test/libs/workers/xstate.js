// xstate: a checkout with guards, a delayed transition, an invoked promise and a saved snapshot.
import { assign, createActor, createMachine, fromPromise, waitFor } from "xstate";

const checkout = createMachine({
  id: "checkout",
  initial: "cart",
  context: { items: 0, receipt: null },
  states: {
    cart: {
      on: {
        ADD: { actions: assign({ items: ({ context }) => context.items + 1 }) },
        PAY: { guard: ({ context }) => context.items > 0, target: "paying" },
      },
    },
    paying: {
      invoke: {
        src: fromPromise(async ({ input }) => `receipt for ${input.items}`),
        input: ({ context }) => context,
        onDone: { target: "thanks", actions: assign({ receipt: ({ event }) => event.output }) },
      },
    },
    thanks: { after: { 20: "done" } },
    done: { type: "final" },
  },
});

export default {
  async fetch() {
    const first = createActor(checkout).start();
    first.send({ type: "PAY" }); // the guard refuses: nothing is in the cart
    const refused = first.getSnapshot().value;
    first.send({ type: "ADD" });
    first.send({ type: "ADD" });
    const saved = JSON.parse(JSON.stringify(first.getPersistedSnapshot()));
    first.stop();
    const second = createActor(checkout, { snapshot: saved }).start();
    second.send({ type: "PAY" });
    const end = await waitFor(second, (state) => state.status === "done");
    return Response.json({ refused, value: end.value, ...end.context });
  },
};
