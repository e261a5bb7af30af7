// acorn: the functions of a script and where they are; a syntax error with its place.
import { parse } from "acorn";

export default {
  async fetch(request) {
    const names = [];
    const visit = (node) => {
      if (Array.isArray(node)) return node.forEach(visit);
      if (!node || typeof node.type !== "string") return;
      if (node.type === "FunctionDeclaration") names.push(`${node.id.name}:${node.loc.start.line}`);
      Object.values(node).forEach((value) => typeof value === "object" && visit(value));
    };
    try {
      visit(parse(await request.text(), { ecmaVersion: "latest", sourceType: "module", locations: true }));
    } catch (error) {
      return Response.json({ error: error.name, line: error.loc.line }, { status: 400 });
    }
    return Response.json(names);
  },
};
