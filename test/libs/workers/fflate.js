// fflate: a zip is made and streamed out; a zip that arrives is read; gzip that our streams read.
import { Zip, ZipDeflate, gzipSync, strFromU8, strToU8, unzipSync } from "fflate";

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/list") {
      const files = unzipSync(new Uint8Array(await request.arrayBuffer()));
      return Response.json(Object.entries(files).map(([name, bytes]) => [name, strFromU8(bytes)]));
    }
    if (pathname === "/gzip") {
      const stream = new Blob([gzipSync(strToU8("squeeze ".repeat(1000)))]).stream().pipeThrough(new DecompressionStream("gzip"));
      return new Response(stream);
    }
    const { readable, writable } = new IdentityTransformStream();
    const writer = writable.getWriter();
    const zip = new Zip((error, chunk, final) => {
      if (error) return void writer.abort(error);
      writer.write(chunk);
      if (final) writer.close();
    });
    for (const [name, text] of [["a.txt", "first file"], ["folder/b.txt", "second ".repeat(5000)]]) {
      const file = new ZipDeflate(name, { level: 9 });
      zip.add(file);
      file.push(strToU8(text), true);
    }
    zip.end();
    return new Response(readable, { headers: { "content-type": "application/zip" } });
  },
};
