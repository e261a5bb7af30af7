// Requests of the tools: with the token, tried again where that may help, and to NAME.localhost wherever the system's resolver
// does not know it (browsers do).
import http from "node:http";
import https from "node:https";

const TRIES_MOST = 8;

/** As dns.lookup(), for names below localhost. */
function loopback(hostname, options, callback) {
  if (options.all) callback(null, [{ address: "127.0.0.1", family: 4 }]);
  else callback(null, "127.0.0.1", 4);
}

export class Client {
  /** `base`: where the application's routes live, prefix included. */
  constructor(base, token) {
    this.base = new URL(base.replace(/\/*$/, "/"));
    this.token = token;
    this.library = this.base.protocol === "https:" ? https : http;
    this.agent = new this.library.Agent({ keepAlive: true, maxSockets: 8 });
    this.lookup = /\.localhost$/.test(this.base.hostname) ? loopback : undefined;
  }

  /** The response, as a stream. */
  open(method, target, body) {
    const url = new URL(target.replace(/^\//, ""), this.base);
    const headers = { authorization: `Bearer ${this.token}`, ...(body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }) };
    return new Promise((resolve, reject) => {
      const request = this.library.request(url, { method, headers, agent: this.agent, ...(this.lookup ? { lookup: this.lookup } : {}) }, resolve);
      request.on("error", reject);
      request.end(body);
    });
  }

  /** The answer as JSON. What is the server's trouble is tried again; what is ours is an error at once. */
  async ask(method, target, value) {
    const body = value === undefined ? undefined : JSON.stringify(value);
    for (let attempt = 1; ; attempt++) {
      let problem;
      try {
        const response = await this.open(method, target, body);
        let text = "";
        for await (const part of response.setEncoding("utf8")) text += part;
        if (response.statusCode < 300) return JSON.parse(text);
        problem = new Error(`${method} ${target}: ${response.statusCode} ${text}`);
        if (response.statusCode < 500 && response.statusCode !== 429) throw Object.assign(problem, { final: true });
      } catch (error) {
        if (error.final) throw error;
        problem = error;
      }
      if (attempt === TRIES_MOST) throw problem;
      await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** attempt));
    }
  }

  close() {
    this.agent.destroy();
  }
}
