import { applications, examples, type Example } from "./examples";
import { notFound } from "../../shared/http";
import { page } from "../../shared/page";

/** Every example has a host of its own, <folder>.localhost, on the port that this page came from. */
function card(example: Example, url: URL): string {
  const link = `${url.protocol}//${example.folder}.localhost${url.port ? `:${url.port}` : ""}/`;
  return `<section><h2><a href="${link}">${example.title}</a></h2><p class="quiet">${example.text}</p></section>`;
}

export default {
  async fetch(request: Request): Promise<Response> {
    const url = new URL(request.url);
    if (url.pathname !== "/") return notFound(url);
    return page({
      title: "Durable Object patterns",
      folder: "gallery",
      lead: "Small Workers projects, each showing one pattern at work, and applications made of them. All of them run on this one server.",
      content: `<div class="grid">${examples.map((example) => card(example, url)).join("")}</div>
        <h2 style="margin: 1.5rem 0 .8rem">Applications</h2>
        <div class="grid">${applications.map((example) => card(example, url)).join("")}</div>`,
    });
  },
};
