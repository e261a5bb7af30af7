// Analytics Engine datasets: https://developers.cloudflare.com/analytics/analytics-engine/
import { takePoint } from "../../internal/turn.js";
import { native } from "../../internal/native.js";
import { finishInterface } from "../../internal/interface.js";

const token = Symbol("construct");
const columnsMax = 20;

/** A member of the point as an array; the members of `[...value]` are its own, whatever it is. */
function list(point, name, most) {
  const value = point[name];
  if (value === undefined) return [];
  if (value === null || typeof value !== "object" || typeof value[Symbol.iterator] !== "function") {
    throw new TypeError(`writeDataPoint(): ${name} must be an array.`);
  }
  const items = [...value];
  if (items.length > most) throw new TypeError(`writeDataPoint(): Maximum of ${most} ${name} supported.`);
  return items;
}

/** What C takes: a string, or bytes. Missing ones are empty. */
function text(value) {
  if (typeof value === "string" || value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return value;
  return value === null || value === undefined ? "" : `${value}`;
}

class AnalyticsEngineDataset {
  #dataset;
  constructor(key, dataset) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#dataset = dataset;
  }
  writeDataPoint(point) {
    if (point === undefined) point = {};
    if (point === null || typeof point !== "object") throw new TypeError("writeDataPoint() takes an object.");
    const indexes = list(point, "indexes", 1).map(text);
    const blobs = list(point, "blobs", columnsMax).map(text);
    const doubles = list(point, "doubles", columnsMax);
    for (let i = 0; i < doubles.length; i++) doubles[i] = Number(doubles[i]);
    takePoint();
    native.analyticsWrite(this.#dataset, indexes.length > 0 ? indexes[0] : "", blobs, blobs.length, new Float64Array(doubles));
  }
}
finishInterface(AnalyticsEngineDataset);

export function makeBinding({ dataset }) {
  return new AnalyticsEngineDataset(token, dataset);
}
