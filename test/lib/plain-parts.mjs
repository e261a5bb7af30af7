// A plugin for esbuild: for those who bundle modules of the prelude themselves, its parts
// (prelude/internal/parts.js) are ordinary modules.
import path from "node:path";

export const plainParts = {
  name: "plain-parts",
  setup(build) {
    build.onResolve({ filter: /^part:/ }, ({ path: name, resolveDir }) => ({ path: path.join(resolveDir, name.slice(5)), namespace: "part" }));
    build.onLoad({ filter: /.*/, namespace: "part" }, ({ path: file }) => ({
      contents: `import * as part from ${JSON.stringify(file)};\nconst load = () => part;\nload.loaded = load;\nexport default load;`,
      resolveDir: path.dirname(file),
    }));
  },
};
