// Pattern strings: https://urlpattern.spec.whatwg.org/#tokens, #parts, #converting-part-lists

// ---- Tokens: https://urlpattern.spec.whatwg.org/#tokenize-a-pattern-string ----

const NAME_START = /^[$_\p{ID_Start}]$/u;
const NAME_PART = /^[$_\u200c\u200d\p{ID_Continue}]$/u;
const isNamePoint = (point, isFirst) => (isFirst ? NAME_START : NAME_PART).test(point);
const isASCII = (point) => point.codePointAt(0) < 128;

/** The end of a regexp group that opens at `start`, or -1 where it is not well-formed. */
function regexpEnd(points, start) {
  let depth = 1;
  let i = start + 1;
  for (; i < points.length; i++) {
    const c = points[i];
    if (!isASCII(c) || (i === start + 1 && c === "?")) return -1;
    if (c === "\\") {
      if (++i === points.length || !isASCII(points[i])) return -1;
    } else if (c === ")") {
      if (--depth === 0) return i === start + 1 ? -1 : i;
    } else if (c === "(") {
      depth++;
      if (points[i + 1] !== "?") return -1; // capturing groups would shift the numbers
    }
  }
  return -1;
}

/** Tokens { type, index, value } of `input`; if lenient, mistakes become "invalid-char". */
export function tokenize(input, isLenient) {
  const points = [...input];
  const offsets = [];
  let offset = 0;
  for (const point of points) {
    offsets.push(offset);
    offset += point.length;
  }
  const tokens = [];
  const add = (type, at, value) => tokens.push({ type, index: offsets[at] ?? input.length, value });
  const mistake = (at) => {
    if (!isLenient) throw new TypeError(`Invalid URLPattern: unexpected "${points[at]}" at ${offsets[at]} in "${input}".`);
    add("invalid-char", at, points[at]);
  };
  for (let i = 0; i < points.length; i++) {
    const c = points[i];
    switch (c) {
      case "*":
        add("asterisk", i, c);
        break;
      case "+":
      case "?":
        add("other-modifier", i, c);
        break;
      case "\\":
        if (i + 1 === points.length) mistake(i);
        else {
          add("escaped-char", i, points[i + 1]);
          i++;
        }
        break;
      case "{":
        add("open", i, c);
        break;
      case "}":
        add("close", i, c);
        break;
      case ":": {
        let end = i + 1;
        while (end < points.length && isNamePoint(points[end], end === i + 1)) end++;
        if (end === i + 1) mistake(i);
        else {
          add("name", i, points.slice(i + 1, end).join(""));
          i = end - 1;
        }
        break;
      }
      case "(": {
        const end = regexpEnd(points, i);
        if (end < 0) mistake(i);
        else {
          add("regexp", i, points.slice(i + 1, end).join(""));
          i = end;
        }
        break;
      }
      default:
        add("char", i, c);
    }
  }
  add("end", points.length, "");
  return tokens;
}

// ---- Parts: https://urlpattern.spec.whatwg.org/#parsing ----

const FULL_WILDCARD = ".*";
const escapeRegexp = (text) => text.replace(/[.+*?^${}()[\]|/\\]/g, "\\$&");
export const escapePattern = (text) => text.replace(/[+*?:{}()\\]/g, "\\$&");
const segmentWildcard = (options) => `[^${escapeRegexp(options.delimiter)}]+?`;

export const DEFAULT_OPTIONS = { delimiter: "", prefix: "" };
export const HOSTNAME_OPTIONS = { delimiter: ".", prefix: "" };
export const PATHNAME_OPTIONS = { delimiter: "/", prefix: "/" };

/** A part is { type: "fixed" | "regexp" | "segment" | "full", value, modifier, name, prefix, suffix }. */
class PatternParser {
  parts = [];
  #tokens;
  #options;
  #encode;
  #index = 0;
  #pending = "";
  #nextName = 0;

  constructor(input, options, encode) {
    this.#tokens = tokenize(input, false);
    this.#options = options;
    this.#encode = encode;
  }

  #take(type) {
    return this.#tokens[this.#index].type === type ? this.#tokens[this.#index++] : null;
  }
  #takeRegexpOrWildcard(name) {
    return this.#take("regexp") ?? (name === null ? this.#take("asterisk") : null);
  }
  #takeModifier() {
    return (this.#take("other-modifier") ?? this.#take("asterisk"))?.value ?? "";
  }
  #require(type) {
    const token = this.#take(type);
    if (token === null) throw new TypeError(`Invalid URLPattern: ${type} expected at ${this.#tokens[this.#index].index}.`);
  }
  #takeText() {
    let text = "";
    for (let token; (token = this.#take("char") ?? this.#take("escaped-char")) !== null; ) text += token.value;
    return text;
  }

  parse() {
    while (this.#index < this.#tokens.length) {
      const char = this.#take("char");
      let name = this.#take("name");
      let matcher = this.#takeRegexpOrWildcard(name);
      if (name !== null || matcher !== null) {
        let prefix = char?.value ?? "";
        if (prefix !== "" && prefix !== this.#options.prefix) {
          this.#pending += prefix;
          prefix = "";
        }
        this.#flush();
        this.#add(prefix, name, matcher, "", this.#takeModifier());
        continue;
      }
      const fixed = char ?? this.#take("escaped-char");
      if (fixed !== null) {
        this.#pending += fixed.value;
        continue;
      }
      if (this.#take("open") !== null) {
        const prefix = this.#takeText();
        name = this.#take("name");
        matcher = this.#takeRegexpOrWildcard(name);
        const suffix = this.#takeText();
        this.#require("close");
        this.#add(prefix, name, matcher, suffix, this.#takeModifier());
        continue;
      }
      this.#flush();
      this.#require("end");
    }
    return this.parts;
  }

  #flush() {
    if (this.#pending === "") return;
    const value = this.#encode(this.#pending);
    this.#pending = "";
    this.parts.push({ type: "fixed", value, modifier: "", name: "", prefix: "", suffix: "" });
  }

  #add(prefix, nameToken, matcher, suffix, modifier) {
    if (nameToken === null && matcher === null && modifier === "") {
      this.#pending += prefix;
      return;
    }
    this.#flush();
    if (nameToken === null && matcher === null) {
      if (prefix !== "") this.parts.push({ type: "fixed", value: this.#encode(prefix), modifier, name: "", prefix: "", suffix: "" });
      return;
    }
    const segment = segmentWildcard(this.#options);
    let value = matcher === null ? segment : matcher.type === "asterisk" ? FULL_WILDCARD : matcher.value;
    const type = value === segment ? "segment" : value === FULL_WILDCARD ? "full" : "regexp";
    if (type !== "regexp") value = "";
    const name = nameToken !== null ? nameToken.value : `${this.#nextName++}`;
    if (this.parts.some((part) => part.name === name)) throw new TypeError(`Invalid URLPattern: the name "${name}" is there twice.`);
    this.parts.push({ type, value, modifier, name, prefix: this.#encode(prefix), suffix: this.#encode(suffix) });
  }
}

// ---- Regular expressions and pattern strings from parts ----

function regexpOf(parts, options) {
  const names = [];
  let source = "^";
  for (const { type, value, modifier, name, prefix, suffix } of parts) {
    if (type === "fixed") {
      source += modifier === "" ? escapeRegexp(value) : `(?:${escapeRegexp(value)})${modifier}`;
      continue;
    }
    names.push(name);
    const matcher = type === "segment" ? segmentWildcard(options) : type === "full" ? FULL_WILDCARD : value;
    const repeats = modifier === "*" || modifier === "+";
    const before = escapeRegexp(prefix);
    const after = escapeRegexp(suffix);
    if (prefix === "" && suffix === "") {
      source += repeats ? `((?:${matcher})${modifier})` : `(${matcher})${modifier}`;
    } else if (!repeats) {
      source += `(?:${before}(${matcher})${after})${modifier}`;
    } else {
      source += `(?:${before}((?:${matcher})(?:${after}${before}(?:${matcher}))*)${after})${modifier === "*" ? "?" : ""}`;
    }
  }
  return { source: `${source}$`, names };
}

const startsWithDigit = (text) => /^\d/.test(text);

function patternStringOf(parts, options) {
  let out = "";
  parts.forEach((part, i) => {
    const { type, value, modifier, name, prefix, suffix } = part;
    if (type === "fixed") {
      out += modifier === "" ? escapePattern(value) : `{${escapePattern(value)}}${modifier}`;
      return;
    }
    const previous = parts[i - 1];
    const next = parts[i + 1];
    const custom = !startsWithDigit(name);
    let groups = suffix !== "" || (prefix !== "" && prefix !== options.prefix);
    if (!groups && custom && type === "segment" && modifier === "" && next !== undefined && next.prefix === "" && next.suffix === "") {
      groups = next.type === "fixed" ? isNamePoint([...next.value][0], false) : startsWithDigit(next.name);
    }
    if (!groups && prefix === "" && previous?.type === "fixed" && options.prefix !== "" && previous.value.endsWith(options.prefix)) groups = true;
    if (groups) out += "{";
    out += escapePattern(prefix);
    if (custom) out += `:${name}`;
    if (type === "regexp") out += `(${value})`;
    else if (type === "segment" && !custom) out += `(${segmentWildcard(options)})`;
    else if (type === "full") {
      const plain = !custom && (previous === undefined || previous.type === "fixed" || previous.modifier !== "" || groups || prefix !== "");
      out += plain ? "*" : `(${FULL_WILDCARD})`;
    }
    if (type === "segment" && custom && suffix !== "" && isNamePoint([...suffix][0], false)) out += "\\";
    out += escapePattern(suffix);
    if (groups) out += "}";
    out += modifier;
  });
  return out;
}

/** https://urlpattern.spec.whatwg.org/#compile-a-component */
export function compileComponent(input, encode, options, ignoreCase = false) {
  const parts = new PatternParser(input, options, encode).parse();
  const { source, names } = regexpOf(parts, options);
  let regexp;
  try {
    // bounded: the script's own pattern, as any regular expression of it (docs/reference/limits.md)
    regexp = new RegExp(source, ignoreCase ? "vi" : "v");
  } catch (error) {
    throw new TypeError(`Invalid URLPattern: ${error.message}`);
  }
  return { pattern: patternStringOf(parts, options), regexp, names, hasRegExpGroups: parts.some((part) => part.type === "regexp") };
}
