// papaparse: CSV with quotes and line breaks to JSON, and JSON to CSV.
import Papa from "papaparse";

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/json") {
      const { data, errors, meta } = Papa.parse(await request.text(), { header: true, dynamicTyping: true, skipEmptyLines: true });
      return Response.json({ data, errors: errors.map((e) => e.code), delimiter: meta.delimiter });
    }
    return new Response(Papa.unparse(await request.json(), { newline: "\n" }), { headers: { "content-type": "text/csv" } });
  },
};
