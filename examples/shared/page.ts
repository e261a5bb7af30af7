// The frame that all example pages share. An example gives its own part of the page as HTML.
import layout from "./layout.html";

export interface Page {
  title: string;
  lead: string;
  folder: string;
  content: string;
}

/** The page as a response. `content` is the example's own HTML and comes from its source, never from a user. */
export function page(parts: Page): Response {
  const html = layout.replace(/\{\{(\w+)\}\}/g, (_: string, name: keyof Page) => parts[name]);
  return new Response(html, { headers: { "content-type": "text/html;charset=utf-8", "cache-control": "no-cache" } });
}
