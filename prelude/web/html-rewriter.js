// HTMLRewriter: https://developers.cloudflare.com/workers/runtime-apis/html-rewriter/
//
// C tokenizes, matches selectors and writes the output (src/html/rewriter.h); here its
// events become calls of handlers. A token object is valid while its handler runs: `token` is
// its shared record, whose `handle` is null afterwards.
import { HtmlEvent, HtmlPlace, HtmlWants } from "../../src/bindings/border.ts";
import { TextDecoder } from "./encoding/text-decoder.js";
import { finishInterface } from "../internal/interface.js";
import { native } from "../internal/native.js";
import { isDictionary, parameterError } from "../internal/webidl.js";
import { Response } from "./fetch/response.js";
import { ByteTransform } from "./streams/byte-transform.js";
import { INTERNAL, illegalConstructor, isObject, markHandled, resolved, then } from "./streams/common.js";
import { isReadableStream, readAllBytes } from "./streams/internal.js";
import { pipe } from "./streams/pipe.js";
import { recordOf, streamObject } from "./streams/readable.js";

const WANTS = { element: HtmlWants.ELEMENT, text: HtmlWants.TEXT, comments: HtmlWants.COMMENTS, doctype: HtmlWants.DOCTYPE, end: HtmlWants.END };
const NAME = 0;
const TEXT = 1;
const NAMESPACE = 2;
const status = new Uint32Array(2);

const invalid = () =>
  new TypeError(
    "This content token is no longer valid. Content tokens are only valid during the execution of the relevant content handler.",
  );

/** All of a stream, which must be UTF-8. */
async function readText(stream) {
  const text = native.utf8DecodeStrict(await readAllBytes(stream));
  if (text === null) throw new TypeError("Parser error: Invalid UTF-8");
  return text;
}

/** What a token object refers to, while its handler runs. */
class Token {
  constructor(session, isLast) {
    this.session = session;
    this.handle = session.handle;
    this.isLast = isLast;
    this.changes = 0; // of its attributes
    this.tasks = null; // insertions that wait for a stream, and those after them
  }

  insert(place, content, options) {
    const isHtml = isObject(options) && !!options.html;
    const stream = content instanceof Response ? content.body : isReadableStream(content) ? content : null;
    if (stream === null && this.tasks === null) {
      const text = content instanceof Response ? "" : `${content}`;
      native.htmlInsert(this.handle, place, text, isHtml);
      return;
    }
    const { handle } = this;
    this.tasks ??= [];
    this.tasks.push(async () => {
      native.htmlInsert(handle, place, stream === null ? `${content}` : await readText(stream), isHtml);
    });
  }

  /** Runs what waits, in order; undefined if nothing does. */
  finish() {
    this.handle = null;
    const { tasks } = this;
    if (tasks === null) return undefined;
    return (async () => {
      for (const task of tasks) await task();
    })();
  }
}

/** What the objects given to handlers have in common: a Token, in a private field. */
class ContentToken {
  #token;
  static of(object) {
    const token = object.#token;
    if (token.handle === null) throw invalid();
    return token;
  }
  constructor(key, token) {
    if (key !== INTERNAL) throw illegalConstructor();
    this.#token = token;
  }
}
const handleOf = (object) => ContentToken.of(object).handle;

/** Gives a class the methods that put content somewhere: { before: HtmlPlace.BEFORE... }. */
function defineInsertions(face, places) {
  for (const name of Object.keys(places)) {
    const methods = {
      [name](content, options = undefined) {
        if (arguments.length === 0) {
          throw new TypeError(`Failed to execute '${name}' on '${face.name}': parameter 1 is not of type 'string or JsReadableStream or Response'.`);
        }
        if (!isDictionary(options)) throw parameterError(name, face.name, 2, "ContentOptions");
        ContentToken.of(this).insert(places[name], content, options);
        return this;
      },
    };
    Object.defineProperty(face.prototype, name, { value: methods[name], writable: true, configurable: true });
  }
}

function defineRemoval(face) {
  Object.defineProperties(face.prototype, {
    remove: {
      value: {
        remove() {
          native.htmlRemove(handleOf(this), false);
          return this;
        },
      }.remove,
      writable: true,
      configurable: true,
    },
    removed: {
      get() {
        return native.htmlRemoved(handleOf(this));
      },
      configurable: true,
    },
  });
}

class Element extends ContentToken {
  get tagName() {
    return native.htmlString(handleOf(this), NAME);
  }
  set tagName(name) {
    native.htmlSet(handleOf(this), 0, `${name}`);
  }
  get attributes() {
    const flat = native.htmlAttributes(handleOf(this));
    const pairs = [];
    for (let i = 0; i < flat.length; i += 2) pairs.push([flat[i], flat[i + 1]]);
    return new AttributesIterator(INTERNAL, pairs, ContentToken.of(this));
  }
  get namespaceURI() {
    return native.htmlString(handleOf(this), NAMESPACE);
  }
  getAttribute(name) {
    return native.htmlGetAttribute(handleOf(this), `${name}`);
  }
  hasAttribute(name) {
    return native.htmlGetAttribute(handleOf(this), `${name}`) !== null;
  }
  setAttribute(name, value) {
    native.htmlSetAttribute(handleOf(this), `${name}`, `${value}`);
    ContentToken.of(this).changes++;
    return this;
  }
  removeAttribute(name) {
    native.htmlRemoveAttribute(handleOf(this), `${name}`);
    ContentToken.of(this).changes++;
    return this;
  }
  removeAndKeepContent() {
    native.htmlRemove(handleOf(this), true);
    return this;
  }
  onEndTag(handler) {
    if (typeof handler !== "function") {
      throw new TypeError("Failed to execute 'onEndTag' on 'Element': parameter 1 is not of type 'Function'.");
    }
    const token = ContentToken.of(this);
    native.htmlOnEndTag(token.handle, token.session.addEndTagHandler(handler));
  }
}

class EndTag extends ContentToken {
  get name() {
    return native.htmlString(handleOf(this), NAME);
  }
  set name(name) {
    native.htmlSet(handleOf(this), 0, `${name}`);
  }
}

class Text extends ContentToken {
  get text() {
    return native.htmlString(handleOf(this), TEXT);
  }
  get lastInTextNode() {
    return ContentToken.of(this).isLast;
  }
}

class Comment extends ContentToken {
  get text() {
    return native.htmlString(handleOf(this), TEXT);
  }
  set text(text) {
    native.htmlSet(handleOf(this), 1, `${text}`);
  }
}

class Doctype extends ContentToken {
  get name() {
    return native.htmlString(handleOf(this), 3);
  }
  get publicId() {
    return native.htmlString(handleOf(this), 4);
  }
  get systemId() {
    return native.htmlString(handleOf(this), 5);
  }
}

class DocumentEnd extends ContentToken {}

const around = { before: HtmlPlace.BEFORE, after: HtmlPlace.AFTER };
defineInsertions(Element, { ...around, prepend: HtmlPlace.PREPEND, append: HtmlPlace.APPEND, replace: HtmlPlace.REPLACE, setInnerContent: HtmlPlace.INNER });
defineInsertions(EndTag, around);
defineInsertions(Text, { ...around, replace: HtmlPlace.REPLACE });
defineInsertions(Comment, { ...around, replace: HtmlPlace.REPLACE });
defineInsertions(DocumentEnd, { append: HtmlPlace.APPEND });
for (const face of [Element, EndTag, Text, Comment]) defineRemoval(face);

class AttributesIterator {
  #pairs;
  #token;
  #changes;
  #at = 0;
  constructor(key, pairs, token) {
    if (key !== INTERNAL) throw illegalConstructor();
    this.#pairs = pairs;
    this.#token = token;
    this.#changes = token.changes;
  }
  next() {
    if (this.#token.handle === null) throw invalid();
    if (this.#token.changes !== this.#changes) {
      throw new TypeError("The attributes of this element have been modified during iteration. You must create a new iterator after modifying attributes.");
    }
    if (this.#at === this.#pairs.length) return { value: undefined, done: true };
    return { value: this.#pairs[this.#at++], done: false };
  }
}
Object.setPrototypeOf(AttributesIterator.prototype, Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())));

/** One document on its way through: the worker of a ByteTransform. */
class Session {
  constructor(registrations) {
    this.registrations = registrations;
    this.endTagHandlers = [];
    this.freeNumbers = [];
    this.handle = native.htmlOpen();
    for (const { selector, wants } of registrations) native.htmlOn(this.handle, selector, wants);
  }

  addEndTagHandler(handler) {
    const number = this.freeNumbers.pop() ?? this.endTagHandlers.length;
    this.endTagHandlers[number] = handler;
    return number;
  }

  transform(bytes, output) {
    native.htmlFeed(this.handle, bytes);
    return this.run(output);
  }

  flush(output) {
    native.htmlFeed(this.handle, undefined);
    return this.run(output);
  }

  close() {}

  /** Calls handlers until input is needed, or one of them returns a promise. */
  run(output) {
    const { handle } = this;
    for (;;) {
      const event = native.htmlNext(handle, status);
      if (event === HtmlEvent.PAUSE) continue; // a turn that takes too long ends here
      if (event === HtmlEvent.NEED_INPUT || event === HtmlEvent.DONE) {
        output.push(native.htmlOutput(handle));
        return undefined;
      }
      const token = new Token(this, status[1] === 1);
      const waiting = this.call(event, status[0], token);
      if (isObject(waiting)) {
        return then(resolved(waiting), () => this.resume(token, output));
      }
      const tasks = token.finish();
      if (tasks !== undefined) return then(tasks, () => this.run(output));
    }
  }

  resume(token, output) {
    const tasks = token.finish();
    return tasks === undefined ? this.run(output) : then(tasks, () => this.run(output));
  }

  call(event, number, token) {
    if (event === HtmlEvent.END_TAG) {
      const handler = this.endTagHandlers[number];
      this.endTagHandlers[number] = undefined;
      this.freeNumbers.push(number);
      return handler(new EndTag(INTERNAL, token));
    }
    const { handlers, element, text, comments, doctype, end } = this.registrations[number];
    switch (event) {
      case HtmlEvent.ELEMENT:
        return element.call(handlers, new Element(INTERNAL, token));
      case HtmlEvent.TEXT:
        return text.call(handlers, new Text(INTERNAL, token));
      case HtmlEvent.COMMENT:
        return comments.call(handlers, new Comment(INTERNAL, token));
      case HtmlEvent.DOCTYPE:
        return doctype.call(handlers, new Doctype(INTERNAL, token));
      default:
        return end.call(handlers, new DocumentEnd(INTERNAL, token));
    }
  }
}

/** Reads the handlers of an object; `names` says which it may have. */
function registration(selector, handlers, names) {
  const result = { selector, handlers, wants: 0 };
  for (const name of names) {
    const handler = handlers[name];
    if (handler === undefined || handler === null) continue;
    if (typeof handler !== "function") throw new TypeError(`The handler '${name}' is not a function.`);
    result[name] = handler;
    result.wants |= WANTS[name];
  }
  return result;
}

function checkCharset(type) {
  const label = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(type ?? "")?.[1];
  if (label === undefined) return;
  try {
    new TextDecoder(label);
  } catch {
    throw new TypeError("Parser error: Unknown character encoding has been provided.");
  }
}

class HTMLRewriter {
  #registrations = [];

  on(selector, handlers) {
    const text = `${selector}`;
    if (!isObject(handlers)) {
      throw new TypeError("Failed to execute 'on' on 'HTMLRewriter': parameter 2 is not of type 'ElementContentHandlers'.");
    }
    native.htmlCheck(text);
    this.#registrations.push(registration(text, handlers, ["comments", "element", "text"]));
    return this;
  }

  onDocument(handlers) {
    if (!isObject(handlers)) {
      throw new TypeError("Failed to execute 'onDocument' on 'HTMLRewriter': parameter 1 is not of type 'DocumentContentHandlers'.");
    }
    this.#registrations.push(registration(null, handlers, ["comments", "doctype", "end", "text"]));
    return this;
  }

  transform(response) {
    const registrations = this.#registrations;
    if (!(response instanceof Response)) {
      throw new TypeError("Failed to execute 'transform' on 'HTMLRewriter': parameter 1 is not of type 'Response'.");
    }
    checkCharset(response.headers.get("content-type"));
    const { body } = response;
    if (body === null) return new Response(null, response);
    const rewriting = new ByteTransform(new Session([...registrations]));
    const source = recordOf(body);
    if (source.reader !== null || source.disturbed) {
      throw new TypeError("This ReadableStream is disturbed (has already been read from), and cannot be used as a body.");
    }
    const result = new Response(streamObject(rewriting.readable), response);
    result.headers.delete("content-length"); // it is not known any more
    markHandled(pipe(source, rewriting.writable, {}));
    return result;
  }
}

for (const face of [Element, EndTag, Text, Comment, Doctype, DocumentEnd, AttributesIterator, HTMLRewriter]) {
  finishInterface(face);
}
export { HTMLRewriter };
