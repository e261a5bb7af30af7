import OpenAI from "openai";
import Stripe from "stripe";

interface Env {
  API: string;
}
const SECRET = "whsec_of_this_example";
export default {
  async fetch(request: Request, env: Env) {
    const url = new URL(request.url), api = new URL(env.API);
    const stripe = new Stripe("sk_test_example", { host: api.hostname, port: Number(api.port), protocol: "http", maxNetworkRetries: 1, httpClient: Stripe.createFetchHttpClient(), telemetry: false });
    const openai = new OpenAI({ apiKey: "key", baseURL: `${env.API}/v1`, maxRetries: 1 });
    try {
      switch (url.pathname) {
        case "/checkout": {
          const session = await stripe.checkout.sessions.create({ mode: "payment", success_url: "https://a.example/", line_items: [{ price: "price_1", quantity: 2 }] }, { idempotencyKey: "once" });
          return Response.json({ id: session.id, url: session.url, amount: session.amount_total });
        }
        case "/customers": {
          const names: string[] = [];
          for await (const customer of stripe.customers.list({ limit: 2 })) names.push(customer.name!);
          return Response.json(names);
        }
        case "/webhook": {
          const event = await stripe.webhooks.constructEventAsync(await request.text(), request.headers.get("stripe-signature")!, SECRET, undefined, Stripe.createSubtleCryptoProvider());
          return Response.json({ type: event.type });
        }
        case "/sign":
          return Response.json({ header: await stripe.webhooks.generateTestHeaderStringAsync({ payload: await request.text(), secret: SECRET, cryptoProvider: Stripe.createSubtleCryptoProvider() }) });
        case "/declined":
          return Response.json(await stripe.charges.create({ amount: 1, currency: "eur" }));
        case "/chat": {
          const stream = await openai.chat.completions.create({ model: "m", stream: true, messages: [{ role: "user", content: "hi" }] });
          return new Response(stream.toReadableStream());
        }
        case "/whole": {
          const answer = await openai.chat.completions.create({ model: "m", messages: [{ role: "user", content: "hi" }] });
          return Response.json(answer.choices[0].message);
        }
        case "/upload": {
          const file = await openai.files.create({ purpose: "assistants", file: await OpenAI.toFile(new TextEncoder().encode("words"), "words.txt") });
          return Response.json({ id: file.id, bytes: file.bytes });
        }
        case "/limited":
          return Response.json(await openai.models.list());
      }
      return new Response(null, { status: 404 });
    } catch (error: any) {
      return Response.json({ name: error.constructor.name, type: error.type, status: error.status ?? error.statusCode, message: error.message }, { status: 500 });
    }
  },
};
