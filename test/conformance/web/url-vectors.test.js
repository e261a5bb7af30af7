// URL against the vectors of the web platform tests: every case of every file, in one test per
// file that lists what differs. url-exceptions.json names the cases that may differ, with reasons;
// a case listed there that passes fails the test, so the list stays true.
import { test, fail, peer } from "../harness.js";
import urltestdata from "shared:wpt-url/urltestdata.json";
import setters from "shared:wpt-url/setters_tests.json";
import percentEncoding from "shared:wpt-url/percent-encoding.json";
import toASCII from "shared:wpt-url/toascii.json";
import idna from "shared:wpt-url/IdnaTestV2.json";
import exceptions from "./url-exceptions.json";

const options = urltestdata ? {} : { skip: "../shared/data/wpt-url is absent" };
const ATTRIBUTES = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];
const cases = (list) => list.filter((entry) => typeof entry === "object");

/** Runs `check` (returns nothing, or what is wrong) for every case; compares with the exceptions. */
function checkAll(file, list, nameOf, check) {
  const excused = exceptions[peer() === "workerd" ? "workerd" : "cairn"][file] ?? {};
  const wrong = [];
  for (const entry of list) {
    const name = nameOf(entry);
    const problem = check(entry);
    if (problem && !Object.hasOwn(excused, name)) wrong.push(`${JSON.stringify(name)}: ${problem}`);
    if (!problem && Object.hasOwn(excused, name)) wrong.push(`${JSON.stringify(name)}: listed as different, but passes`);
  }
  if (wrong.length) fail(`${wrong.length} of ${list.length}:\n${wrong.join("\n")}`);
}

const tryParse = (input, base) => {
  try {
    return new URL(input, base);
  } catch {
    return null;
  }
};

test("urltestdata.json", () => {
  checkAll("urltestdata.json", cases(urltestdata), (c) => `${c.input} <${c.base ?? ""}>`, (c) => {
    const base = c.base ?? undefined;
    const url = tryParse(c.input, base);
    if (URL.canParse(c.input, base) !== (url !== null)) return "canParse() disagrees";
    if (c.failure) return url === null ? "" : `parsed as ${url.href}`;
    if (url === null) return "failed";
    for (const name of ATTRIBUTES) {
      if (name in c && url[name] !== c[name]) return `${name} is ${url[name]}, not ${c[name]}`;
    }
    if ("searchParams" in c && url.searchParams.toString() !== c.searchParams) return `searchParams are ${url.searchParams}`;
    if (new URL(url.href).href !== url.href) return "parsing its href changes it";
    return "";
  });
}, options);

for (const attribute of Object.keys(setters ?? {}).filter((key) => key !== "comment")) {
  test(`setters_tests.json: ${attribute}`, () => {
    checkAll(`setters_tests.json ${attribute}`, setters[attribute], (c) => `${c.href} = ${c.new_value}`, (c) => {
      const url = new URL(c.href);
      url[attribute] = c.new_value;
      for (const [name, value] of Object.entries(c.expected)) {
        if (url[name] !== value) return `${name} is ${url[name]}, not ${value}`;
      }
      return "";
    });
  });
}

// Other encodings than UTF-8 come from documents, which a server has none of.
test("percent-encoding.json, UTF-8", () => {
  checkAll("percent-encoding.json", cases(percentEncoding), (c) => c.input, (c) => {
    const url = new URL(`http://doesnotmatter.invalid/?${c.input}#${c.input}`);
    if (url.search !== `?${c.output["utf-8"]}`) return `search is ${url.search}`;
    return "";
  });
}, options);

for (const [file, list] of [["toascii.json", toASCII], ["IdnaTestV2.json", idna]]) {
  test(file, () => {
    checkAll(file, cases(list), (c) => c.input, (c) => {
      const url = tryParse(`https://${c.input}/x`);
      // An empty name is no host, whatever UTS #46 says of it.
      const expected = c.output === "" ? null : c.output;
      if ((url?.hostname ?? null) !== expected) return `${url?.hostname ?? null}, not ${expected}`;
      if (expected === null) return "";
      const other = new URL("https://x/x");
      other.host = c.input;
      return other.host === expected ? "" : `host = gives ${other.host}`;
    });
  }, options);
}
