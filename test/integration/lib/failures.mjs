// A reporter of `node --test`: each test that failed, as a line of JSON, for tools/again.mjs; then a line that says
// that the run came to its end.
import path from "node:path";

/** Everything an error says, its causes' too. */
function words(error, depth = 0) {
  if (!error || depth > 4) return "";
  return [error.message, error.stack, words(error.cause, depth + 1)].filter(Boolean).join("\n");
}

export default async function* failures(events) {
  const within = new Map(); // what failed inside of a test, by file, until that test itself is told
  for await (const { type, data } of events) {
    if (type !== "test:fail") continue;
    const text = [within.get(data.file), words(data.details?.error)].filter(Boolean).join("\n");
    within.set(data.file, data.nesting > 0 ? text : undefined);
    if (data.nesting > 0) continue;
    const file = data.file ? path.relative(process.cwd(), data.file) : null;
    yield JSON.stringify({ file, name: data.name, text }) + "\n";
  }
  yield JSON.stringify({ done: true }) + "\n"; // nobody ended the run before its time
}
