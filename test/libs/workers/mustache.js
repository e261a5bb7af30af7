// mustache: sections, partials, escaping, lambdas.
import Mustache from "mustache";

const page = `<h1>{{title}}</h1>
{{#items}}
{{> item}}
{{/items}}
{{^items}}nothing{{/items}}
{{#loud}}done by {{author}}{{/loud}}`;

export default {
  async fetch(request) {
    const view = { ...(await request.json()), loud: () => (text, render) => render(text).toUpperCase() };
    return new Response(Mustache.render(page, view, { item: "<li>{{name}}{{{raw}}}</li>\n" }));
  },
};
