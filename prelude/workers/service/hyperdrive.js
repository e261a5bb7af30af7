// A Hyperdrive binding: the way to the project's own database, without a pool in between.
// https://developers.cloudflare.com/hyperdrive/
import { URL } from "../../web/url/url.js";
import sockets from "part:../sockets.js";

const ports = { __proto__: null, "postgres:": 5432, "postgresql:": 5432, "mysql:": 3306 };

class Hyperdrive {
  #name;
  #text;
  #url = null;
  #wanted;
  constructor({ name, url, id }) {
    this.#name = name;
    this.#text = url;
    this.#wanted =
      id === undefined
        ? `in the variable CAIRN_HYPERDRIVE_${name} or as "localConnectionString"`
        : `to uploaded workers in the server's variable CAIRN_HYPERDRIVE_ID_${id}`;
  }
  /** The connection string in its parts. */
  get #parts() {
    if (this.#url !== null) return this.#url;
    if (this.#text === undefined)
      throw new Error(`env.${this.#name} has no database: give its connection string ${this.#wanted}`);
    return (this.#url = new URL(this.#text));
  }
  get connectionString() {
    return this.#parts && this.#text;
  }
  get host() {
    return this.#parts.hostname;
  }
  get port() {
    const url = this.#parts;
    return url.port === "" ? ports[url.protocol] : Number(url.port);
  }
  get user() {
    return decodeURIComponent(this.#parts.username);
  }
  get password() {
    return decodeURIComponent(this.#parts.password);
  }
  get database() {
    return decodeURIComponent(this.#parts.pathname.slice(1));
  }
  connect() {
    return sockets().connect({ hostname: this.host, port: this.port });
  }
}

export const makeBinding = (binding) => new Hyperdrive(binding);
