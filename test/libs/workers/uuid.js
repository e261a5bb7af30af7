// uuid and nanoid: random, time-ordered and named identifiers.
import { customAlphabet, nanoid } from "nanoid";
import { v1, v4, v5, v7, validate, version } from "uuid";

export default {
  fetch() {
    const ordered = Array.from({ length: 50 }, () => v7());
    const ids = new Set(Array.from({ length: 1000 }, () => v4()));
    return Response.json({
      versions: [v1(), v4(), v5("example.com", v5.DNS), v7()].map((id) => validate(id) && version(id)),
      named: v5("example.com", v5.DNS),
      ordered: ordered.join() === ordered.toSorted().join(),
      unique: ids.size,
      nano: /^[\w-]{21}$/.test(nanoid()), digits: /^\d{8}$/.test(customAlphabet("0123456789", 8)()),
    });
  },
};
