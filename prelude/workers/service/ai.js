// `env.AI` of an `ai` binding, as a gateway to any server that speaks OpenAI's API ([cairn.ai]):
// https://developers.cloudflare.com/workers-ai/configuration/bindings/
//
// Texts, tools and JSON are asked for at /chat/completions, vectors at /embeddings, what has `input` at
// /responses; answers come back in the shape that the platform gives them. Everything else that the
// platform runs (pictures, sounds) fails with a sentence.
import { TextDecoder } from "../../web/encoding/text-decoder.js";
import { TextEncoder } from "../../web/encoding/text-encoder.js";
import { fetch } from "../../web/fetch/fetch.js";
import streams from "part:../../web/streams/part.js";

class InferenceUpstreamError extends Error {
  constructor(message) {
    super(message);
    this.name = "InferenceUpstreamError";
  }
}

const isObject = (value) => value !== null && typeof value === "object";

/** The platform also takes tools without their wrapping. */
const toolOf = (tool) =>
  isObject(tool) && tool.function === undefined && typeof tool.name === "string"
    ? { type: "function", function: { name: tool.name, description: tool.description, parameters: tool.parameters } }
    : tool;

/** A call of a tool as the platform gives it: its arguments are an object. */
function callOf(call) {
  let args = call.function?.arguments;
  try {
    args = JSON.parse(args);
  } catch {
    // a text that is no JSON stays what it is
  }
  return { name: call.function?.name, arguments: args };
}

/** What the platform answers with for one choice of a completion. */
function answerOf(completion, wantsJson) {
  const message = completion.choices?.[0]?.message ?? {};
  const answer = { response: message.content ?? "" };
  if (wantsJson && typeof answer.response === "string") {
    try {
      answer.response = JSON.parse(answer.response);
    } catch {
      // the model did not do as it was told: the text is all there is
    }
  }
  if (message.tool_calls?.length) answer.tool_calls = message.tool_calls.map(callOf);
  if (completion.usage !== undefined) answer.usage = completion.usage;
  return answer;
}

/** One event of a completion that is streamed, as the platform words it; "" for one that says nothing. */
function eventOf(data) {
  if (data === "[DONE]") return "data: [DONE]\n\n";
  let chunk;
  try {
    chunk = JSON.parse(data);
  } catch {
    return "";
  }
  const delta = chunk.choices?.[0]?.delta ?? {};
  const event = { response: delta.content ?? "" };
  if (delta.tool_calls?.length) event.tool_calls = delta.tool_calls;
  if (chunk.usage) event.usage = chunk.usage;
  if (event.response === "" && event.tool_calls === undefined && event.usage === undefined) return "";
  return `data: ${JSON.stringify(event)}\n\n`;
}

const LINE_MAX = 1 << 20; // of an event: a server that sends no line breaks is not listened to

/** Server-sent events in, the platform's events out. */
function translateEvents(body) {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = "";
  const take = (line, controller) => {
    const text = line.endsWith("\r") ? line.slice(0, -1) : line;
    if (!text.startsWith("data:")) return;
    const event = eventOf(text.slice(5).trim());
    if (event !== "") controller.enqueue(encoder.encode(event));
  };
  return body.pipeThrough(
    new (streams().TransformStream)({
      transform(chunk, controller) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = lines.pop();
        if (rest.length > LINE_MAX) throw new InferenceUpstreamError("The server's event is too long");
        for (const line of lines) take(line, controller);
      },
      flush(controller) {
        if (rest !== "") take(rest, controller);
      },
    }),
  );
}

export class Ai {
  #name;
  #url;
  #key;
  #models;
  lastRequestId = null;
  aiGatewayLogId = null;
  lastRequestHttpStatusCode = null;
  lastRequestInternalStatusCode = null;

  constructor({ name, url, key, models }) {
    this.#name = name;
    this.#url = url;
    this.#key = key;
    this.#models = models ?? {};
  }

  async #send(path, body, options) {
    if (this.#url === undefined)
      throw new Error(`env.${this.#name} leads nowhere: name a server that speaks OpenAI's API in the configuration, [cairn.ai] url`);
    const headers = { ...options.extraHeaders, "content-type": "application/json" };
    if (this.#key !== undefined) headers.authorization = `Bearer ${this.#key}`;
    const init = body === null ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(`${this.#url}${path}`, { ...init, signal: options.signal });
    this.lastRequestId = response.headers.get("x-request-id");
    this.lastRequestHttpStatusCode = response.status;
    if (response.ok || options.returnRawResponse) return response;
    const text = (await response.text()).slice(0, 2000);
    let message = text;
    try {
      const { error } = JSON.parse(text);
      message = typeof error === "string" ? error : (error?.message ?? text);
    } catch {
      // not JSON: as it is
    }
    throw new InferenceUpstreamError(`${response.status}: ${message}`);
  }

  /** The server's name of a model: by the table, by its "*", or the same. */
  #modelOf(model) {
    return this.#models[model] ?? this.#models["*"] ?? model;
  }

  async run(model, inputs, options = {}) {
    if (typeof model !== "string") throw new TypeError("run() takes the name of a model");
    if (!isObject(inputs)) throw new TypeError("run() takes the inputs of the model, an object");
    if (options.websocket) throw new Error("Models over WebSockets are not there: [cairn.ai] leads to a server that speaks OpenAI's API");
    const { prompt, messages, text, input, raw, lora, stream, tools, ...more } = inputs;
    const name = this.#modelOf(model);
    if (input !== undefined) return this.#respond(name, inputs, options);
    if (typeof text === "string" || Array.isArray(text)) return this.#embed(name, text, options);
    if (messages === undefined && typeof prompt !== "string")
      throw new Error(`[cairn.ai] has no way to run ${model} with {${Object.keys(inputs).join(", ")}}: only texts (messages, prompt, input) and embeddings (text)`);
    const body = { ...more, model: name, messages: messages ?? [{ role: "user", content: prompt }] };
    if (Array.isArray(tools)) body.tools = tools.map(toolOf);
    if (stream) {
      body.stream = true;
      body.stream_options ??= { include_usage: true };
    }
    const response = await this.#send("/chat/completions", body, options);
    if (options.returnRawResponse) return response;
    if (stream) return translateEvents(response.body);
    const format = inputs.response_format?.type;
    return answerOf(await response.json(), format === "json_object" || format === "json_schema");
  }

  async #respond(name, inputs, options) {
    const response = await this.#send("/responses", { ...inputs, model: name }, options);
    if (options.returnRawResponse) return response;
    return inputs.stream ? response.body : response.json();
  }

  async #embed(name, text, options) {
    const response = await this.#send("/embeddings", { model: name, input: text, encoding_format: "float" }, options);
    if (options.returnRawResponse) return response;
    const { data } = await response.json();
    if (!Array.isArray(data)) throw new InferenceUpstreamError("The server's answer has no embeddings");
    const vectors = data.map((item) => item.embedding);
    return { shape: [vectors.length, vectors[0]?.length ?? 0], data: vectors, pooling: "mean" };
  }

  /** The names that the table and the server have. */
  async models() {
    const response = await this.#send("/models", null, {});
    const { data } = await response.json();
    const entry = (id) => ({ id, source: 1, name: id, description: "", task: { id: "", name: "", description: "" }, tags: [], properties: [] });
    const known = Object.keys(this.#models).filter((name) => name !== "*");
    return [...known, ...(Array.isArray(data) ? data.map((item) => item.id) : [])].map(entry);
  }

  getLogs() {
    return [];
  }
  gateway() {
    return this.#missing("gateway");
  }
  autorag() {
    return this.#missing("autorag");
  }
  aiSearch() {
    return this.#missing("aiSearch");
  }
  toMarkdown() {
    return this.#missing("toMarkdown");
  }
  fetch() {
    return this.#missing("fetch");
  }
  #missing(method) {
    throw new Error(`env.${this.#name}.${method}() is not there: [cairn.ai] leads to a server that speaks OpenAI's API, which has nothing like it`);
  }
}

export const makeBinding = (binding) => new Ai(binding);
