// A WebSocket that comes back. Give it a URL and a function for what arrives; send() never fails and never loses.
//
//   * After a loss it connects again after 1 s, 2 s, 4 s, ... at most 30 s, each shortened by a random part so that many
//     clients do not all come back in the same instant. A connection that held for a while starts over at 1 s.
//   * Messages are numbered and kept until the server has acknowledged them; after a reconnection the rest is sent again.
//     The server ignores numbers it has seen, so each arrives once and in order.
//   * The queue is bounded: past the bound send() says no, and the application decides.
const FIRST_MS = 1000;
const MOST_MS = 30_000;
const STEADY_MS = 5000;
const QUEUE_MOST = 1000;

export class ResilientSocket extends EventTarget {
  #url;
  #socket = null;
  #queue = []; // {seq, body}, oldest first: not acknowledged yet
  #seq = 0;
  #failures = 0;
  #timer = null;
  #closed = false;

  constructor(url) {
    super();
    this.#url = url;
    this.#connect();
    // The browser often knows before the next attempt would.
    addEventListener("online", () => this.#connectNow());
  }

  get waiting() {
    return this.#queue.length;
  }

  /** False if too much is waiting already. */
  send(body) {
    if (this.#queue.length >= QUEUE_MOST) return false;
    const message = { seq: ++this.#seq, body };
    this.#queue.push(message);
    this.#transmit(message);
    this.#tell("queue");
    return true;
  }

  /** Drops the connection as a broken network would. */
  cut() {
    this.#socket?.close(4000, "cut");
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.close(1000);
  }

  #tell(type, detail = {}) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  #transmit(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #connectNow() {
    if (this.#closed || !this.#timer) return;
    clearTimeout(this.#timer);
    this.#connect();
  }

  #connect() {
    this.#timer = null;
    this.#tell("state", { state: "connecting" });
    const socket = (this.#socket = new WebSocket(this.#url));
    let steady;
    socket.onopen = () => {
      steady = setTimeout(() => { this.#failures = 0; }, STEADY_MS);
      this.#tell("state", { state: "open" });
    };
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === "ready") {
        // The server says up to where it has us; the rest is sent again, in order.
        this.#acknowledge(message.seq);
        this.#tell("ready", message);
        for (const waiting of this.#queue) this.#transmit(waiting);
      } else if (message.type === "ack") {
        this.#acknowledge(message.seq);
      } else {
        this.#tell("message", message);
      }
    };
    socket.onclose = () => {
      clearTimeout(steady);
      if (this.#closed) return this.#tell("state", { state: "closed" });
      const most = Math.min(MOST_MS, FIRST_MS * 2 ** this.#failures++);
      const delay = most * (0.5 + Math.random() / 2);
      this.#timer = setTimeout(() => this.#connect(), delay);
      this.#tell("state", { state: "waiting", delay });
    };
  }

  #acknowledge(seq) {
    this.#queue = this.#queue.filter((message) => message.seq > seq);
    this.#seq = Math.max(this.#seq, seq);
    this.#tell("queue");
  }
}
