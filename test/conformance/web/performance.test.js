// performance, scheduler, navigator and Date as the platform has them.
import { test, assert, assertEquals } from "../harness.js";

test("performance.now() is on the scale of Date.now()", () => {
  assertEquals(performance.timeOrigin, 0);
  assert(Math.abs(performance.now() - Date.now()) < 1000);
  assertEquals(Object.prototype.toString.call(performance), "[object Performance]");
  assertEquals(performance.toJSON().timeOrigin, 0);
});

test("mark() and measure()", () => {
  performance.clearMarks();
  performance.clearMeasures();
  const mark = performance.mark("a", { detail: { a: 1 } });
  assert(mark instanceof PerformanceMark && mark instanceof PerformanceEntry);
  assertEquals([mark.name, mark.entryType, mark.duration, mark.detail], ["a", "mark", 0, { a: 1 }]);
  const measure = performance.measure("m", "a");
  assert(measure instanceof PerformanceMeasure);
  assertEquals([measure.name, measure.entryType, measure.startTime], ["m", "measure", mark.startTime]);
  assertEquals(performance.getEntriesByName("a").length, 1);
  assertEquals(performance.getEntriesByType("measure").length, 1);
  performance.clearMarks();
  assertEquals(performance.getEntries().length, 1);
  performance.clearMeasures();
});

test("time stands still while a script computes", () => {
  const start = Date.now();
  let x = 0;
  for (let i = 0; i < 3e6; i++) x += Math.sqrt(i);
  assert(x > 0);
  assertEquals([Date.now(), new Date().getTime(), performance.now()], [start, start, start]);
}, { differs: { workerd: "workerd on its own machine has a real clock" } });

test("time moves on with I/O", async () => {
  const start = Date.now();
  await new Promise((r) => setTimeout(r, 15));
  assert(Date.now() - start >= 10, `${Date.now() - start} ms`);
});

test("Date is as it was", () => {
  assertEquals([Date.name, Date.length, Date.prototype.constructor === Date], ["Date", 7, true]);
  assert(new Date() instanceof Date);
  assertEquals(typeof Date(), "string");
  assertEquals(new Date(2020, 1, 2, 3, 4, 5, 6).getMilliseconds(), 6);
  assertEquals(new Date("2020-01-01T00:00:00Z").getTime(), Date.UTC(2020, 0, 1));
  assertEquals(new Date(new Date(5)).getTime(), 5);
  assertEquals(Number.isNaN(new Date(undefined).getTime()), true);
  assertEquals(Date.parse("1970-01-01T00:00:01Z"), 1000);
  class Mine extends Date {
    mine() {
      return this.getTime();
    }
  }
  assert(new Mine() instanceof Mine && new Mine(7).mine() === 7 && new Mine() instanceof Date);
  assertEquals(Object.prototype.toString.call(new Date()), "[object Date]");
});

test("a date is read with a small t and z, too", () => {
  const at = Date.UTC(2020, 0, 2, 3, 4, 5);
  for (const text of ["2020-01-02t03:04:05z", "2020-01-02T03:04:05z", "2020-01-02t03:04:05Z", "2020-01-02t03:04:05.000z", "2020-01-02t03:04:05+00:00"]) {
    assertEquals([Date.parse(text), new Date(text).getTime()], [at, at], text);
    class Day extends Date {}
    assertEquals(new Day(text).getTime(), at, text);
  }
  assertEquals([Date.parse("2020-13-02t03:04:05z"), Date.parse("t"), Date.parse.length], [NaN, NaN, 1]);
});
