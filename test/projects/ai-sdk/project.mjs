const json = (value, status = 200) => ({ status, headers: { "content-type": "application/json" }, body: JSON.stringify(value) });
const answer = (message, finish_reason) => json({ id: "1", object: "chat.completion", created: 1, model: "small", choices: [{ index: 0, message, finish_reason }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } });
/** A model that asks for the weather once, then tells it. */
function standIn({ body }) {
  const { stream, messages } = JSON.parse(body), last = messages.at(-1);
  if (stream) {
    const chunk = (delta, finish_reason = null) => `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "small", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    return { headers: { "content-type": "text/event-stream" }, body: `${chunk({ role: "assistant", content: "Hel" })}${chunk({ content: "lo" })}${chunk({}, "stop")}data: [DONE]\n\n` };
  }
  if (JSON.stringify(last.content).includes("fail")) return json({ error: { message: "no" } }, 503);
  if (last.role === "tool") return answer({ role: "assistant", content: `It has ${JSON.parse(last.content).degrees} degrees.` }, "stop");
  return answer({ role: "assistant", content: null, tool_calls: [{ id: "c1", type: "function", function: { name: "weather", arguments: '{"town":"Rome"}' } }] }, "tool_calls");
}
export default {
  title: "AI SDK (ai, @ai-sdk/openai-compatible)",
  does: "against a local model: a streamed text, a tool that is called and answered, an error",
  packages: { ai: "7.0.169", "@ai-sdk/openai-compatible": "3.0.90", zod: "4.6.7" },
  standInVar: "API",
  standIn,
  async script(t) {
    t.check((await t.get("/stream")).text === "Hello", "a stream");
    t.check((await t.get("/tool")).json().text === "It has 21 degrees.", "a tool");
    t.check((await t.get("/error")).json().status === 503, "an error");
  },
};
