// env.ASSETS: the static files of the project, as the server would answer with them.
import { native } from "../internal/native.js";
import { Request } from "../web/fetch/request.js";
import { Response } from "../web/fetch/response.js";
import { URL } from "../web/url/url.js";
import { createByteStreamFromBytes, createByteStreamFromPull } from "../web/streams/internal.js";

const PIECE_BYTES = 128 * 1024;
/** What a relative URL is resolved against. */
const BASE = "https://assets.local/";

/** The bytes of a file that is not in memory, a piece at a time. */
function fileStream(path, offset, size) {
  let left = size;
  return createByteStreamFromPull(async () => {
    if (left === 0) return null;
    const chunk = await native.assetRead(path, offset, Math.min(left, PIECE_BYTES));
    offset += chunk.byteLength;
    left -= chunk.byteLength;
    return chunk;
  }, undefined, null, size);
}

const unquoted = (etag) => etag.slice(1, -1);

class Fetcher {
  /** What names the bytes of the file of exactly this path, or null. */
  async unstable_exists(pathname) {
    const found = native.assetFind(`${pathname}`);
    return found === undefined ? null : unquoted(found[0]);
  }

  /** The file of exactly this path, whatever its address is, or null. */
  async unstable_getByPathname(pathname) {
    const path = `${pathname}`;
    const found = native.assetFind(path);
    if (found === undefined) return null;
    const [, type, bytes, size] = found;
    return {
      readableStream: bytes === undefined ? fileStream(path, 0, size) : createByteStreamFromBytes(bytes),
      contentType: type ?? undefined,
      cacheStatus: "MISS",
    };
  }

  async fetch(input, init) {
    const relative = typeof input === "string" && input.startsWith("/");
    const request = new Request(relative ? BASE + input.slice(1) : input, init);
    const url = new URL(request.url);
    let headers = "";
    for (const [name, value] of request.headers) headers += `${name}\n${value}\n`;
    const answer = native.assetFetch(request.method, url.hostname, url.pathname + url.search, headers);
    if (answer === undefined) return new Response(null, { status: 404 });
    const [status, bytes, path, offset, size, ...fields] = answer;
    const pairs = [];
    for (let i = 0; i < fields.length; i += 2) pairs.push([fields[i], fields[i + 1]]);
    const body = bytes === undefined ? (size === 0 ? "" : fileStream(path, offset, size)) : bytes;
    return new Response(body, { status, headers: pairs });
  }
}

export function makeAssets() {
  return new Fetcher();
}
