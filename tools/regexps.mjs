// Whether a regular expression is linear: whether an engine that backtracks can take more time than in proportion to the text.
//
// A text costs more if there is a word w that one place of the pattern can repeat, that another place can repeat, and that leads from the
// first to the second: then w w w ... is divided between them in as many ways as it is long, and each is tried if what comes behind does not
// match. The search for the first place of a match is such a place too: it repeats every character. So
//
//     / +$/       the search, then the run: 2 places, time with the square of the length
//     /^ +$/      no search: linear
//     / +/        linear: whatever follows the run, it has matched
//     /^(a+)+$/   one place repeats itself in two ways: exponential
//
// The places are the characters and classes of the pattern (its Glushkov automaton); counted ones stand as often as they may match, up to
// COPIES. What follows a lookahead starts where it does; behind it there is no match yet. References to groups are never linear.
const COPIES = 4;
const SAMPLES = [...Array(0x180).keys(), 0x2028, 0x2029, 0x212a, 0x3000, 0xd800, 0xfeff, 0x1f600].map((code) => String.fromCodePoint(code));

/** The pattern as a tree: {type: "atom" | "sequence" | "choice" | "repeat" | "look" | "edge" | "reference", ...}. */
function parse(source) {
  let at = 0;
  const escape = () => {
    const match = /^\\(?:u\{[^}]*\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[pP]\{[^}]*\}|k<[^>]*>|c[A-Za-z]|[1-9]\d*|[^])/.exec(source.slice(at))[0];
    at += match.length;
    if (match === "\\b" || match === "\\B") return { type: "edge" };
    if (/^\\(?:k<|[1-9])/.test(match)) return { type: "reference" };
    return { type: "atom", source: match };
  };
  const set = () => {
    const start = at++;
    for (let depth = 1; depth > 0; at++) {
      if (source[at] === "\\") at++;
      else if (source[at] === "]") depth--;
    }
    return { type: "atom", source: source.slice(start, at) };
  };
  const group = () => {
    const head = /^\((?:\?(?:<?[=!]|:|<[^>]*>))?/.exec(source.slice(at))[0];
    at += head.length;
    const body = choice();
    at++; // )
    return /[=!]$/.test(head) ? { type: "look", body } : body;
  };
  const term = () => {
    const c = source[at];
    if (c === "\\") return escape();
    if (c === "[") return set();
    if (c === "(") return group();
    at++;
    if (c === "^" || c === "$") return { type: "edge", source: c };
    const low = source.codePointAt(at - 1);
    if (low > 0xffff) at++;
    return { type: "atom", source: c === "." ? "." : String.fromCodePoint(low).replace(/[{}]/, "\\$&") };
  };
  const quantified = () => {
    const body = term();
    const match = /^(?:([*+?])|\{(\d+)(,(\d*))?\})\??/.exec(source.slice(at));
    if (!match) return body;
    at += match[0].length;
    const [, sign, low, comma, high] = match;
    const min = sign ? Number(sign === "+") : Number(low);
    const max = sign === "?" ? 1 : sign || (comma && !high) ? Infinity : Number(high ?? low);
    return { type: "repeat", body, min, max };
  };
  const sequence = () => {
    const items = [];
    while (at < source.length && source[at] !== "|" && source[at] !== ")") items.push(quantified());
    return { type: "sequence", items };
  };
  const choice = () => {
    const items = [sequence()];
    while (source[at] === "|") {
      at++;
      items.push(sequence());
    }
    return items.length === 1 ? items[0] : { type: "choice", items };
  };
  return choice();
}

/** The automaton: places with their sources, which follow which (and in how many ways), and those with which a match is complete. */
class Automaton {
  places = []; // source of each
  follow = []; // place -> Map(place -> ways)
  hasReference = false;
  add(source) {
    this.places.push(source);
    this.follow.push(new Map());
    return this.places.length - 1;
  }
  link(from, to) {
    for (const a of from) for (const b of to) this.follow[a].set(b, (this.follow[a].get(b) ?? 0) + 1);
  }
  /** Of a node: the places it may begin and end with, whether it may be empty, and whether it surely matched at its end. */
  build(node) {
    switch (node.type) {
      case "atom": { const p = this.add(node.source); return { first: [p], last: [p], empty: false, sure: true }; }
      case "reference": this.hasReference = true; return { first: [], last: [], empty: true, sure: false };
      case "edge": return { first: [], last: [], empty: true, sure: false };
      case "look": return { first: this.build(node.body).first, last: [], empty: true, sure: false };
      case "choice": return this.join(node.items.map((item) => this.build(item)));
      case "sequence": return node.items.map((item) => this.build(item)).reduce((a, b) => this.chain(a, b), { first: [], last: [], empty: true, sure: true });
      default: return this.repeat(node);
    }
  }
  join(parts) {
    return { first: parts.flatMap((p) => p.first), last: parts.flatMap((p) => p.last), empty: parts.some((p) => p.empty), sure: parts.every((p) => p.sure) };
  }
  chain(a, b) {
    this.link(a.last, b.first);
    return { first: a.empty ? [...a.first, ...b.first] : a.first, last: b.empty ? [...b.last, ...a.last] : b.last, empty: a.empty && b.empty, sure: a.sure && b.sure };
  }
  /** x{1,3} is x(x(x)?)?: a copy is there if the one before it is. */
  repeat({ body, min, max }) {
    let whole = { first: [], last: [], empty: true, sure: true };
    const ends = []; // of the copies behind which it may end
    const copies = Math.min(max === Infinity ? Math.max(min, 1) : max, COPIES);
    for (let i = 0; i < copies; i++) {
      const part = this.build(body);
      if (max > COPIES && i === copies - 1) this.link(part.last, part.first);
      whole = this.chain(whole, part);
      if (i + 1 >= Math.min(min, copies)) ends.push(...part.last);
    }
    return { ...whole, last: [...new Set([...whole.last, ...ends])], empty: whole.empty || min === 0 };
  }
}

/** Which letters each place takes; letters are kinds of characters that no place tells apart. */
function lettersOf(places, flags) {
  const tests = places.map((source) => (source === null ? null : new RegExp(`^(?:${source})$`, flags.replace(/[gyd]/g, ""))));
  const kinds = new Map();
  for (const sample of SAMPLES) {
    const signature = tests.map((test) => (test === null || test.test(sample) ? 1 : 0)).join("");
    if (!kinds.has(signature)) kinds.set(signature, signature);
  }
  const letters = [...kinds.keys()];
  return places.map((_, p) => new Set(letters.map((_, i) => i).filter((i) => letters[i][p] === "1")));
}

const startsAt = (node, sign) => node.type === "sequence" ? node.items.length > 0 && startsAt(node.items[0], sign)
  : node.type === "choice" ? node.items.every((item) => startsAt(item, sign)) : node.type === "edge" && node.source === sign;

/** A sentence that says why `source` is not linear, or null. */
export function whyNotLinear(source, flags = "") {
  const tree = parse(source);
  const automaton = new Automaton();
  const search = automaton.add(null); // the search for the first place
  const line = automaton.add("[\\n\\r\\u2028\\u2029]"); // the same, at the beginning of a line
  automaton.link([search], [search, line]);
  const sure = new Set();
  for (const item of tree.type === "choice" ? tree.items : [tree]) {
    const part = automaton.build(item);
    if (part.sure) for (const p of part.last) sure.add(p);
    // An alternative that may match nothing and has no edge matches wherever the search begins.
    const isAnchored = flags.includes("y") || (startsAt(item, "^") && !flags.includes("m")) || (part.empty && part.sure);
    if (!isAnchored) automaton.link([startsAt(item, "^") ? line : search], part.first);
  }
  if (automaton.hasReference) return "it refers to a group";
  return findAmbiguity(automaton, lettersOf(automaton.places, flags), sure, search);
}

function findAmbiguity({ places, follow }, letters, sure, search) {
  const name = (p) => (p === search ? "the search for a beginning" : places[p]);
  const reach = places.map((_, p) => {
    const seen = new Set(), todo = [...follow[p].keys()];
    while (todo.length) {
      const q = todo.pop();
      if (seen.has(q)) continue;
      seen.add(q);
      todo.push(...follow[q].keys());
    }
    return seen;
  });
  const loops = places.map((_, p) => p).filter((p) => reach[p].has(p));
  for (const p of loops)
    for (const [q, ways] of follow[p]) if (ways > 1 && reach[q].has(p)) return `${name(p)} is followed by ${name(q)} in ${ways} ways within a loop`;
  const common = (a, b, c) => [...letters[a]].some((letter) => letters[b].has(letter) && letters[c].has(letter));
  for (const p of loops) for (const q of loops) {
    if (p === q ? !repeatsItselfTwice(p) : !(reach[p].has(q) && !skips(p, q) && canPump(p, q))) continue;
    return p === q ? `${name(p)} repeats itself in two ways` : `${name(p)} and ${name(q)} can repeat the same text`;
  }
  return null;

  /** Whether nothing that follows can fail. */
  function skips(p, q) {
    return p === search ? sure.has(q) : sure.has(p) && sure.has(q);
  }
  /** w from p to p, from p to q, and from q to q. */
  function canPump(p, q) {
    return walk([p, p, q], [p, q, q], (a, b, c) => reach[a].has(p) && reach[b].has(q) && reach[c].has(q) && !(p === search && (sure.has(b) || sure.has(c))));
  }
  /** w from p to p by two ways. */
  function repeatsItselfTwice(p) {
    for (const a of follow[p].keys()) for (const b of follow[p].keys())
      if (a < b && common(a, b, b) && reach[a].has(p) && reach[b].has(p) && walk([a, b, b], [p, p, p], (x, y) => reach[x].has(p) && reach[y].has(p))) return true;
    return false;
  }
  function walk(from, to, allowed) {
    const key = (t) => (t[0] * places.length + t[1]) * places.length + t[2];
    const seen = new Set(), todo = [from], target = key(to);
    while (todo.length) {
      const t = todo.pop();
      for (const a of follow[t[0]].keys()) for (const b of follow[t[1]].keys()) for (const c of follow[t[2]].keys()) {
        const next = [a, b, c], k = key(next);
        if (seen.has(k) || !common(a, b, c) || !(k === target || allowed(a, b, c))) continue;
        if (k === target) return true;
        seen.add(k);
        todo.push(next);
      }
    }
    return false;
  }
}
