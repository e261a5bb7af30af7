import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

export default {
  async fetch(request: Request, env: { API: string }) {
    const { pathname } = new URL(request.url);
    const model = createOpenAICompatible({ name: "local", baseURL: `${env.API}/v1`, apiKey: "key" })("small");
    if (pathname === "/stream") return streamText({ model, prompt: "hi" }).toTextStreamResponse();
    if (pathname === "/tool") {
      const weather = tool({ description: "the weather of a town", inputSchema: z.object({ town: z.string() }), execute: async ({ town }) => ({ town, degrees: 21 }) });
      const { text, steps } = await generateText({ model, prompt: "How warm is it in Rome?", tools: { weather }, stopWhen: stepCountIs(3) });
      return Response.json({ text, steps: steps.map((s) => [s.finishReason, s.toolCalls.map((c) => c.toolName)]) });
    }
    try {
      await generateText({ model, prompt: "fail", maxRetries: 0 });
    } catch (error: any) {
      return Response.json({ name: error.name, status: error.statusCode, retryable: error.isRetryable }, { status: 502 });
    }
    return new Response(null, { status: 500 });
  },
};
