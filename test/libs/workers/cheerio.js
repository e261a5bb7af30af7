// cheerio and parse5: a page with mistakes is read, asked and changed as a browser would.
import * as cheerio from "cheerio";
import { parseFragment, serialize } from "parse5";

export default {
  async fetch(request) {
    const text = await request.text();
    const $ = cheerio.load(text);
    $("a[href^='http:']").each((_, a) => $(a).attr("href", $(a).attr("href").replace("http:", "https:")));
    return Response.json({
      title: $("title").text(),
      links: $("a").map((_, a) => $(a).attr("href")).get(),
      items: $("ul > li:nth-child(odd)").map((_, li) => $(li).text().trim()).get(),
      table: serialize(parseFragment("<table><tr><td>1<td>2<b>x</table>")),
    });
  },
};
