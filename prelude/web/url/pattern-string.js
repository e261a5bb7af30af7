// The one string that a URLPattern may be made from:
// https://urlpattern.spec.whatwg.org/#constructor-string-parsing
import { tokenize } from "./pattern-parser.js";

const ORDER = ["init", "protocol", "authority", "username", "password", "hostname", "port", "pathname", "search", "hash", "done"];
const isOneOf = (state, first, last) => ORDER.indexOf(state) >= ORDER.indexOf(first) && ORDER.indexOf(state) <= ORDER.indexOf(last);

class ConstructorStringParser {
  result = {};
  #input;
  #tokens;
  #matchesSpecial;
  #state = "init";
  #start = 0; // of the component, in tokens
  #index = 0;
  #step = 1;
  #groupDepth = 0;
  #bracketDepth = 0;
  #isSpecial = false;

  /** `matchesSpecial` says whether a pattern for the protocol matches a special scheme. */
  constructor(input, matchesSpecial) {
    this.#input = input;
    this.#tokens = tokenize(input, true);
    this.#matchesSpecial = matchesSpecial;
  }

  #token(index) {
    return this.#tokens[index] ?? this.#tokens.at(-1);
  }
  #is(value, index = this.#index) {
    const token = this.#token(index);
    return token.value === value && (token.type === "char" || token.type === "escaped-char" || token.type === "invalid-char");
  }
  #isSearchPrefix() {
    if (this.#is("?")) return true;
    if (this.#tokens[this.#index].value !== "?") return false;
    if (this.#index === 0) return true;
    return !["name", "regexp", "close", "asterisk"].includes(this.#token(this.#index - 1).type);
  }
  #component() {
    return this.#input.slice(this.#token(this.#start).index, this.#tokens[this.#index].index);
  }

  #rewind(state = this.#state) {
    this.#index = this.#start;
    this.#step = 0;
    this.#state = state;
  }

  #change(state, skip) {
    const old = this.#state;
    const { result } = this;
    if (old !== "init" && old !== "authority" && old !== "done") result[old] = this.#component();
    if (old !== "init" && state !== "done") {
      if (isOneOf(old, "protocol", "password") && isOneOf(state, "port", "hash")) result.hostname ??= "";
      if (isOneOf(old, "protocol", "port") && isOneOf(state, "search", "hash")) result.pathname ??= this.#isSpecial ? "/" : "";
      if (isOneOf(old, "protocol", "pathname") && state === "hash") result.search ??= "";
    }
    this.#state = state;
    this.#index += skip;
    this.#start = this.#index;
    this.#step = 0;
  }

  parse() {
    for (; this.#index < this.#tokens.length; this.#index += this.#step) {
      this.#step = 1;
      const { type } = this.#tokens[this.#index];
      if (type === "end") {
        if (this.#state === "init") {
          this.#rewind();
          if (this.#is("#")) this.#change("hash", 1);
          else if (this.#isSearchPrefix()) this.#change("search", 1);
          else this.#change("pathname", 0);
          continue;
        }
        if (this.#state === "authority") {
          this.#rewind("hostname");
          continue;
        }
        this.#change("done", 0);
        break;
      }
      if (type === "open") {
        this.#groupDepth++;
        continue;
      }
      if (this.#groupDepth > 0) {
        if (type !== "close") continue;
        this.#groupDepth--;
      }
      this.#advance();
    }
    if (this.result.hostname !== undefined) this.result.port ??= "";
    return this.result;
  }

  #advance() {
    switch (this.#state) {
      case "init":
        if (this.#is(":")) this.#rewind("protocol");
        break;
      case "protocol":
        if (!this.#is(":")) break;
        this.#isSpecial = this.#matchesSpecial(this.#component());
        if (this.#is("/", this.#index + 1) && this.#is("/", this.#index + 2)) this.#change("authority", 3);
        else this.#change(this.#isSpecial ? "authority" : "pathname", 1);
        break;
      case "authority":
        if (this.#is("@")) this.#rewind("username");
        else if (this.#is("/") || this.#isSearchPrefix() || this.#is("#")) this.#rewind("hostname");
        break;
      case "username":
        if (this.#is(":")) this.#change("password", 1);
        else if (this.#is("@")) this.#change("hostname", 1);
        break;
      case "password":
        if (this.#is("@")) this.#change("hostname", 1);
        break;
      case "hostname":
        if (this.#is("[")) this.#bracketDepth++;
        else if (this.#is("]")) this.#bracketDepth--;
        else if (this.#is(":") && this.#bracketDepth === 0) this.#change("port", 1);
        else this.#afterHost();
        break;
      case "port":
        this.#afterHost();
        break;
      case "pathname":
        if (this.#isSearchPrefix()) this.#change("search", 1);
        else if (this.#is("#")) this.#change("hash", 1);
        break;
      case "search":
        if (this.#is("#")) this.#change("hash", 1);
        break;
    }
  }
  #afterHost() {
    if (this.#is("/")) this.#change("pathname", 0);
    else if (this.#isSearchPrefix()) this.#change("search", 1);
    else if (this.#is("#")) this.#change("hash", 1);
  }
}

export function parseConstructorString(input, matchesSpecial) {
  return new ConstructorStringParser(input, matchesSpecial).parse();
}
