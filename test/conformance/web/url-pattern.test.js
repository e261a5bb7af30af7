// URLPattern (https://urlpattern.spec.whatwg.org/) against the vectors of the web platform tests.
// url-exceptions.json names the cases that may differ, with reasons.
import { test, assert, assertEquals, assertThrows, fail, peer } from "../harness.js";
import vectors from "shared:wpt-url/urlpatterntestdata.json";
import exceptions from "./url-exceptions.json";

const COMPONENTS = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** What the pattern's component must read, as the test of the vectors computes it. */
function expectedComponent(entry, name) {
  if (entry.exactly_empty_components?.includes(name)) return "";
  if (entry.expected_obj && typeof entry.expected_obj === "object" && name in entry.expected_obj) return entry.expected_obj[name];
  const [first] = entry.pattern;
  if (typeof first === "object" && first !== null && first[name]) return first[name];
  const baseText = typeof first === "object" ? first?.baseURL : typeof entry.pattern[1] === "string" ? entry.pattern[1] : undefined;
  const earlier = { protocol: [], hostname: ["protocol"], port: ["protocol", "hostname"], pathname: ["protocol", "hostname", "port"], search: ["protocol", "hostname", "port", "pathname"], hash: ["protocol", "hostname", "port", "pathname", "search"] };
  if (typeof first === "object" && earlier[name]?.some((other) => other in first)) return "*";
  if (baseText !== undefined && name !== "username" && name !== "password") {
    const base = new URL(baseText);
    const value = base[name];
    if (name === "protocol") return value.slice(0, -1);
    return name === "search" || name === "hash" ? value.slice(1) : value;
  }
  return "*";
}

function problemOf(entry) {
  let pattern;
  try {
    pattern = new URLPattern(...entry.pattern);
  } catch (error) {
    if (entry.expected_obj === "error") return error instanceof TypeError ? "" : `threw ${error}`;
    return `threw ${error}`;
  }
  if (entry.expected_obj === "error") return "did not throw";
  for (const name of COMPONENTS) {
    const expected = expectedComponent(entry, name);
    if (pattern[name] !== expected) return `${name} is ${JSON.stringify(pattern[name])}, not ${JSON.stringify(expected)}`;
  }
  if (entry.expected_match === "error") {
    try {
      pattern.test(...entry.inputs);
    } catch (error) {
      return error instanceof TypeError ? "" : `threw ${error}`;
    }
    return "test() did not throw";
  }
  if (entry.inputs === undefined) return "";
  const matches = entry.expected_match !== null && entry.expected_match !== undefined;
  if (pattern.test(...entry.inputs) !== matches) return `test() is ${!matches}`;
  const result = pattern.exec(...entry.inputs);
  if (!matches) return result === null ? "" : "exec() gave a result";
  for (const name of COMPONENTS) {
    let expected = entry.expected_match[name];
    if (expected === undefined) expected = { input: "", groups: entry.exactly_empty_components?.includes(name) ? {} : { 0: "" } };
    const got = { input: result[name].input, groups: Object.fromEntries(Object.entries(result[name].groups).map(([k, v]) => [k, v ?? null])) };
    if (!same(Object.entries(got.groups).sort(), Object.entries(expected.groups).sort()) || got.input !== expected.input) return `${name}: ${JSON.stringify(got)}, not ${JSON.stringify(expected)}`;
  }
  return "";
}

test("urlpatterntestdata.json", () => {
  const excused = exceptions[peer() === "workerd" ? "workerd" : "cairn"]["urlpatterntestdata.json"] ?? {};
  const wrong = [];
  for (const entry of vectors) {
    const name = JSON.stringify(entry.pattern) + (entry.inputs ? ` ${JSON.stringify(entry.inputs)}` : "");
    const problem = problemOf(entry);
    if (problem !== "" && !Object.hasOwn(excused, name)) wrong.push(`${name}: ${problem}`);
    if (problem === "" && Object.hasOwn(excused, name)) wrong.push(`${name}: listed as different, but passes`);
  }
  if (wrong.length) fail(`${wrong.length} of ${vectors.length}:\n${wrong.join("\n")}`);
}, vectors ? {} : { skip: "../shared/data/wpt-url is absent" });

test("routes as people write them", () => {
  const pattern = new URLPattern({ pathname: "/users/:id{/posts/:post(\\d+)}?" });
  assertEquals(pattern.exec("https://example.com/users/7/posts/12").pathname.groups, { id: "7", post: "12" });
  assertEquals(pattern.exec("https://example.com/users/7").pathname.groups, { id: "7", post: undefined });
  assert(!pattern.test("https://example.com/users/7/posts/x"));
  assertEquals(new URLPattern("https://*.example.com/:a/*").exec("https://www.example.com/x/y/z").pathname.groups, { a: "x", 0: "y/z" });
  assert(new URLPattern("/Foo", "https://a.com", { ignoreCase: true }).test("https://a.com/foo"));
  assertEquals([pattern.hasRegExpGroups, new URLPattern({ pathname: "/:x" }).hasRegExpGroups], [true, false]);
  assertThrows(TypeError, () => new URLPattern("/relative"));
  assertThrows(TypeError, () => new URLPattern({ pathname: "/(" }));
});
