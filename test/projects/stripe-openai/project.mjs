const json = (value, status = 200, headers = {}) => ({ status, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(value) });
const chunk = (text) => `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content: text } }] })}\n\n`;

/** Both services, as far as the project asks; the first request for models is one too many. */
function standIn({ path, body, headers, method }, requests) {
  const form = new URLSearchParams(body.toString());
  if (path === "/v1/checkout/sessions") {
    if (headers["idempotency-key"] !== "once") return json({ error: { message: "no key" } }, 400);
    return json({ id: "cs_1", object: "checkout.session", url: "https://pay.example/", amount_total: 100 * Number(form.get("line_items[0][quantity]")) });
  }
  if (path.startsWith("/v1/customers")) {
    const second = path.includes("starting_after=c2");
    return json({ object: "list", has_more: !second, url: "/v1/customers", data: second ? [{ id: "c3", name: "Cy" }] : [{ id: "c1", name: "Ada" }, { id: "c2", name: "Bob" }] });
  }
  if (path === "/v1/charges") return json({ error: { type: "card_error", code: "card_declined", message: "Your card was declined." } }, 402);
  if (path === "/v1/chat/completions") {
    if (!JSON.parse(body).stream) return json({ id: "c", object: "chat.completion", choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }] });
    return { headers: { "content-type": "text/event-stream" }, body: `${chunk("hel")}${chunk("lo")}data: [DONE]\n\n` };
  }
  if (path === "/v1/files" && method === "POST") return json({ id: "f1", object: "file", bytes: /words\.txt[^]*\r\n\r\nwords\r\n/.test(body.toString()) ? 5 : -1 });
  if (path === "/v1/models") return requests.filter((r) => r.path === path).length < 2 ? json({ error: { message: "slow down" } }, 429, { "retry-after-ms": "10" }) : json({ object: "list", data: [{ id: "m", object: "model" }] });
  return { status: 404 };
}
export default {
  title: "Stripe's and OpenAI's clients",
  does: "local server: idempotent requests, pages, webhook signatures, declined card, streamed answers, upload, retry after 429",
  packages: { stripe: "23.1.0", openai: "6.49.0" },
  standInVar: "API",
  standIn,
  normalise: [[/v1=[0-9a-f]{64}/g, "v1=…"]],
  async script(t) {
    t.check((await t.get("/checkout")).json().amount === 200, "a session");
    t.check((await t.get("/customers")).json().length === 3, "all pages");
    const payload = JSON.stringify({ id: "evt_1", object: "event", type: "charge.succeeded", data: { object: {} } });
    const { header } = (await t.request("/sign", { method: "POST", body: payload })).json();
    t.check((await t.request("/webhook", { method: "POST", body: payload, headers: { "stripe-signature": header } })).json().type === "charge.succeeded", "a webhook");
    t.check((await t.request("/webhook", { method: "POST", body: payload + " ", headers: { "stripe-signature": header } })).status === 500, "a forged webhook");
    t.check((await t.get("/declined")).json().type === "StripeCardError", "a declined card");
    t.check((await t.get("/chat")).text.includes('"hel"'), "a stream");
    t.check((await t.get("/whole")).json().content === "hello", "an answer");
    t.check((await t.get("/upload")).json().bytes === 5, "an upload");
    t.check((await t.get("/limited")).json().data?.length === 1, "a retry");
  },
};
