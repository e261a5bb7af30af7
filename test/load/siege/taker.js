// Takes request bodies in every way there is.
const born = String(Math.random());

export default {
  async fetch(request) {
    const what = new URL(request.url).pathname.slice(1);
    if (what === "bytes") return new Response(String((await request.arrayBuffer()).byteLength));
    if (what === "text") return new Response(String((await request.text()).length));
    if (what === "form") return new Response(String([...(await request.formData()).keys()].length));
    if (what === "clone") {
      const copy = request.clone(); // one branch is read, the other waits
      let size = 0;
      for await (const chunk of copy.body) size += chunk.byteLength;
      return new Response(String(size + (await request.arrayBuffer()).byteLength));
    }
    if (what === "stream") {
      let size = 0;
      for await (const chunk of request.body) size += chunk.byteLength;
      return new Response(String(size));
    }
    return new Response(born);
  },
};
