// How the dashboard reads metrics and writes numbers.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "../../../dashboard/lib/format.js";
import { parse, quantile, total } from "../../../dashboard/lib/metrics.js";

const scrape = (low, middle, high) => parse(`# HELP cairn_request_duration_seconds x
# TYPE cairn_request_duration_seconds histogram
cairn_request_duration_seconds_bucket{worker="a",le="0.001"} ${low}
cairn_request_duration_seconds_bucket{worker="a",le="0.01"} ${middle}
cairn_request_duration_seconds_bucket{worker="a",le="+Inf"} ${high}
cairn_requests_total{worker="a",status="2xx"} 7
cairn_requests_total{worker="b \\"quoted\\\\ ",status="5xx"} 2
cairn_process_cpu_seconds_total 1.5
`);

test("Prometheus text: labels with quotes, sums of those that fit", () => {
  const families = scrape(0, 0, 0);
  assert.equal(total(families, "requests_total"), 9);
  assert.equal(total(families, "requests_total", ({ status }) => status === "5xx"), 2);
  assert.equal(families.get("cairn_requests_total")[1].labels.worker, 'b "quoted\\ ');
  assert.equal(total(families, "process_cpu_seconds_total"), 1.5);
  assert.equal(total(families, "nothing"), 0);
});

test("quantiles of what came between two scrapes", () => {
  const name = "request_duration_seconds";
  assert.equal(quantile(scrape(5, 5, 5), scrape(5, 5, 5), name, 0.5), undefined);
  assert.equal(quantile(scrape(10, 10, 10), undefined, name, 0.5), 0.0005); // in the middle of the first range
  assert.equal(quantile(scrape(10, 20, 20), scrape(10, 10, 10), name, 0.5).toFixed(6), "0.005500");
  assert.equal(quantile(scrape(0, 0, 4), undefined, name, 0.99), 0.01); // beyond the last bound: at least that
  assert.equal(quantile(scrape(10, 10, 10), undefined, name, 0.5, ({ worker }) => worker === "b"), undefined);
});

test("numbers, sizes, times", () => {
  assert.deepEqual([0, 999, 12_345, 1_234_567, 0.25, undefined].map(format.short), ["0", "999", "12.3k", "1.23M", "0.25", "–"]);
  assert.deepEqual([0, 1023, 4096, 5 * 2 ** 30, null].map(format.bytes), ["0 B", "1023 B", "4 KiB", "5 GiB", "–"]);
  assert.deepEqual([0, 5e-5, 0.0123, 2, NaN].map(format.seconds), ["0 ms", "50 µs", "12.3 ms", "2 s", "–"]);
  assert.deepEqual([-90_000, 4_000, 3_600_000 * 30, 86_400_000 * 9].map((ms) => format.ago(1e12 + ms, 1e12)), ["90 s ago", "now", "in 30 h", "in 9 days"]);
  assert.deepEqual([1, 2].map((n) => format.counted(n, "row")), ["1 row", "2 rows"]);
});
