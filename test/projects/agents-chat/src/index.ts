import { Agent, callable, type Connection, getAgentByName, routeAgentRequest } from "agents";

interface Env {
  Counter: DurableObjectNamespace<Counter>;
}
type State = { count: number; reminders: string[] };

export class Counter extends Agent<Env, State> {
  initialState: State = { count: 0, reminders: [] };
  async onRequest(request: Request) {
    this.sql`create table if not exists visits (method text)`;
    this.sql`insert into visits values (${request.method})`;
    const [visits] = this.sql<{ n: number }>`select count(*) as n from visits`;
    return Response.json({ name: this.name, state: this.state, visits: visits.n });
  }
  onMessage(connection: Connection, message: string) {
    connection.send(`echo ${message}`);
  }
  @callable()
  add(n: number) {
    this.setState({ ...this.state, count: this.state.count + n });
    return this.state.count;
  }
  @callable({ streaming: true })
  async countTo(stream: any, n: number) {
    for (let i = 1; i < n; i++) stream.send(i);
    stream.end(n);
  }
  @callable()
  async remind(text: string) {
    await this.schedule(1, "onReminder", { text });
    return this.getSchedules().length;
  }
  @callable()
  fail() {
    throw new Error("on purpose");
  }
  notCallable() {
    return "secret";
  }
  async onReminder({ text }: { text: string }) {
    this.setState({ ...this.state, reminders: [...this.state.reminders, text] });
  }
}
export default {
  async fetch(request: Request, env: Env) {
    const url = new URL(request.url);
    if (url.pathname === "/direct") {
      const agent = await getAgentByName(env.Counter, "room");
      return Response.json({ count: await agent.add(10) });
    }
    return (await routeAgentRequest(request, env, { cors: true })) ?? new Response("no agent", { status: 404 });
  },
};
