// openai against the endpoint in env.API: a completion as a stream of events, a tool call, an error.
import OpenAI from "openai";

export default {
  async fetch(request, env) {
    const client = new OpenAI({ apiKey: "sk-test", baseURL: env.API, maxRetries: 0 });
    const messages = [{ role: "user", content: "Count to three" }];
    const stream = await client.chat.completions.create({ model: "small", messages, stream: true });
    let text = "";
    for await (const event of stream) text += event.choices[0]?.delta?.content ?? "";
    const answer = await client.chat.completions.create({ model: "small", messages });
    const failed = await client.chat.completions.create({ model: "none", messages }).catch((error) => `${error.constructor.name} ${error.status}`);
    return Response.json({ text, tool: answer.choices[0].message.tool_calls[0].function.name, failed });
  },
};
