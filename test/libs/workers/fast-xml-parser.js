// fast-xml-parser: an RSS feed to JSON, JSON to a feed, what is not well formed.
import { XMLBuilder, XMLParser, XMLValidator } from "fast-xml-parser";

const parser = new XMLParser({ ignoreAttributes: false, isArray: (name) => name === "item" });
const builder = new XMLBuilder({ ignoreAttributes: false, format: true });

export default {
  async fetch(request) {
    const text = await request.text();
    const valid = XMLValidator.validate(text);
    if (valid !== true) return Response.json(valid.err.code, { status: 400 });
    const { rss } = parser.parse(text);
    const items = rss.channel.item.map((item) => ({ title: item.title, audio: item.enclosure?.["@_url"], size: Number(item.enclosure?.["@_length"]) }));
    if (new URL(request.url).pathname === "/json") return Response.json(items);
    return new Response(builder.build({ rss: { "@_version": "2.0", channel: { title: "copy", item: items.map(({ title }) => ({ title })) } } }));
  },
};
