// A WebSocket that comes back: it connects again after every loss, waiting twice as long after each
// failure, 30 s at most, and at once when the network returns. Served to the examples' pages.
//
//   const socket = new ReconnectingSocket("/rooms/lobby");
//   socket.addEventListener("open", ...); socket.addEventListener("message", ({ data }) => ...);
//   socket.addEventListener("waiting", ({ detail }) => ...); // ms until the next try
export class ReconnectingSocket extends EventTarget {
  #url;
  #firstMs;
  #mostMs;
  #failures = 0;
  #socket = null;
  #timer;
  #ended = false;

  constructor(path, { firstMs = 500, mostMs = 30_000 } = {}) {
    super();
    this.#url = new URL(path, location.href.replace(/^http/, "ws")).href;
    this.#firstMs = firstMs;
    this.#mostMs = mostMs;
    addEventListener("online", () => this.#now());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.#now());
    // Objects answer "ping" without waking up; a connection that has died unnoticed shows here.
    setInterval(() => this.send("ping"), 25_000);
    this.#connect();
  }

  get open() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Sends if it is open; false if it is not. */
  send(message) {
    if (!this.open) return false;
    this.#socket.send(typeof message === "string" ? message : JSON.stringify(message));
    return true;
  }

  end() {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#socket?.close(1000);
  }

  /** How long to wait after so many failures: doubled each time, and spread so that not all come at once. */
  delay(failures) {
    return Math.min(this.#mostMs, this.#firstMs * 2 ** failures) * (0.5 + Math.random() / 2);
  }

  #connect() {
    const socket = (this.#socket = new WebSocket(this.#url));
    socket.onopen = () => {
      this.#failures = 0;
      this.dispatchEvent(new Event("open"));
    };
    socket.onmessage = ({ data }) => {
      if (data !== "pong") this.dispatchEvent(new MessageEvent("message", { data: JSON.parse(data) }));
    };
    socket.onclose = () => {
      if (this.#ended) return;
      const wait = this.delay(this.#failures++);
      this.#timer = setTimeout(() => this.#connect(), wait);
      this.dispatchEvent(new CustomEvent("waiting", { detail: wait }));
    };
  }

  /** The network is back, or somebody looks: no reason to wait. */
  #now() {
    if (this.#ended || this.#socket.readyState !== WebSocket.CLOSED) return;
    clearTimeout(this.#timer);
    this.#connect();
  }
}

/** Shows the state of a socket in an element. */
export function showState(socket, element) {
  const show = (text, state) => {
    element.textContent = text;
    element.className = state;
  };
  show("connecting…", "warn");
  socket.addEventListener("open", () => show("connected", "good"));
  socket.addEventListener("waiting", ({ detail }) => show(`connection lost; trying again in ${Math.ceil(detail / 1000)} s`, "bad"));
}
