// marked: GitHub's tables and lists, an own renderer, the text of a page.
import { Marked } from "marked";

const marked = new Marked({
  gfm: true,
  renderer: { link({ href, text }) { return `<a rel="nofollow" href="${href}">${text}</a>`; } },
});
export default {
  async fetch(request) {
    return new Response(await marked.parse(await request.text()), { headers: { "content-type": "text/html" } });
  },
};
