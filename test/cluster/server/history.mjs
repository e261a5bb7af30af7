// The history of objects that are lists: what was asked, what was answered, and whether it can have been so. The rules of test/simulate/check.c.
import { createHash } from "node:crypto";

const digest = (list) => createHash("md5").update(list.join("\n")).digest("base64");

export class History {
  ops = [];

  /** Notes one try: `send` resolves with {status, value}. Every write has a value of its own, so that each try is one operation. */
  async note(object, write, send) {
    const op = { object, write, asked: performance.now(), answered: Infinity, ok: false };
    this.ops.push(op);
    const { status, value } = await send();
    op.status = status;
    if (status !== 200) return op; // it may have been carried out or not
    op.answered = performance.now();
    op.ok = true;
    op.length = value.length;
    op.digest = digest(value);
    return op;
  }

  /** What is wrong, given what each object has in the end. */
  check(finals) {
    const wrong = [];
    for (const [object, list] of finals) {
      const ops = this.ops.filter((op) => op.object === object);
      const at = new Map(list.map((value, i) => [value, i + 1]));
      if (at.size !== list.length) wrong.push(`${object}: a write is there twice`);
      const digests = list.reduce((all, _, i) => (all.push(digest(list.slice(0, i + 1))), all), [digest([])]);
      const answered = ops.filter((op) => op.ok).sort((a, b) => a.answered - b.answered);
      let next = 0, longest = 0;
      for (const op of ops.filter((each) => each.ok)) {
        if (op.write !== undefined && !at.has(op.write)) wrong.push(`${object}: ${op.write} is lost, though it was acknowledged`);
        if (digests[op.length] !== op.digest) wrong.push(`${object}: a state of ${op.length} that never was`);
      }
      for (const op of ops.filter((each) => each.ok).sort((a, b) => a.asked - b.asked)) {
        for (; next < answered.length && answered[next].answered < op.asked; next++) longest = Math.max(longest, answered[next].length);
        if (op.length < longest) wrong.push(`${object}: an answer of ${op.length} is stale, after one of ${longest}`);
      }
      for (const later of ops.filter((each) => each.write !== undefined && at.has(each.write)))
        for (const op of answered)
          if (later.asked > op.answered && at.get(later.write) <= op.length) wrong.push(`${object}: an answer knows of ${later.write}, which was asked for later`);
    }
    return wrong;
  }
}
