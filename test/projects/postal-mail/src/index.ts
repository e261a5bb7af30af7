import { createMimeMessage } from "mimetext/browser";
import PostalMime from "postal-mime";

export default {
  async fetch(request: Request, env: { MAIL: R2Bucket }) {
    const { pathname } = new URL(request.url);
    if (pathname === "/write") {
      const { from, to, subject, text, html } = (await request.json()) as Record<string, string>;
      const message = createMimeMessage();
      message.setSender({ name: "Ada Ünïcode", addr: from });
      message.setRecipient(to);
      message.setSubject(subject);
      message.addMessage({ contentType: "text/plain", data: text });
      message.addMessage({ contentType: "text/html", data: html });
      message.addAttachment({ filename: "a.txt", contentType: "text/plain", data: btoa("attached") });
      const raw = message.asRaw();
      await env.MAIL.put("last.eml", raw, { httpMetadata: { contentType: "message/rfc822" } });
      return new Response(String(raw.length > 300));
    }
    if (pathname === "/last") {
      const object = await env.MAIL.get("last.eml");
      if (!object) return new Response(null, { status: 404 });
      return Response.json(await summary(object.body));
    }
    return Response.json(await summary(request.body!));
  },
};
async function summary(raw: ReadableStream) {
  const mail = await PostalMime.parse(raw, { attachmentEncoding: "utf8" });
  return { from: mail.from, to: mail.to, cc: mail.cc, subject: mail.subject, text: mail.text, html: mail.html, date: mail.date, id: mail.messageId, attachments: mail.attachments.map((a) => [a.filename, a.mimeType, a.disposition, a.content]) };
}
