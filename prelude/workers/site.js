// `__STATIC_CONTENT` of Workers Sites: files of the project, read as a KV namespace is.
import assets from "part:./assets.js";

/** tools/bundler/site.mjs puts a hash of the contents before the extension of a name. */
const KEY = /^(.*)\.[0-9a-f]{10}((?:\.[^./]*)?)$/;

const convert = {
  __proto__: null,
  text: (response) => response.text(),
  json: (response) => response.json(),
  arrayBuffer: (response) => response.arrayBuffer(),
  stream: (response) => response.body,
};

class SiteNamespace {
  #files = assets().makeAssets();

  async get(key, options) {
    const type = typeof options === "string" ? options : (options?.type ?? "text");
    const read = convert[type];
    if (read === undefined) throw new TypeError(`get(): the type must be "text", "json", "arrayBuffer" or "stream"`);
    const path = `${key}`.replace(KEY, "$1$2");
    const url = `http://site/${path.split("/").map(encodeURIComponent).join("/")}`;
    const response = await this.#files.fetch(url);
    return response.status === 200 ? read(response) : null;
  }
  async getWithMetadata(key, options) {
    return { value: await this.get(key, options), metadata: null, cacheStatus: null };
  }
  async list() {
    throw new Error("__STATIC_CONTENT cannot be listed: __STATIC_CONTENT_MANIFEST names the files");
  }
  async put() {
    throw new Error("__STATIC_CONTENT cannot be written: it is the files of the project");
  }
  async delete() {
    throw new Error("__STATIC_CONTENT cannot be written: it is the files of the project");
  }
}

export const makeSite = () => new SiteNamespace();
