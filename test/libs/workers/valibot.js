// valibot: a pipeline with a transformation, an asynchronous check, flattened issues.
import * as v from "valibot";

const taken = new Set(["root"]);
const SignUp = v.pipeAsync(
  v.objectAsync({
    name: v.pipeAsync(v.string(), v.trim(), v.minLength(3, "too short"), v.checkAsync(async (name) => !taken.has(name), "taken")),
    age: v.optional(v.pipe(v.string(), v.transform(Number), v.integer(), v.minValue(18, "too young"))),
  }),
);

export default {
  async fetch(request) {
    const form = Object.fromEntries(await request.formData());
    const result = await v.safeParseAsync(SignUp, form);
    return result.success
      ? Response.json(result.output)
      : Response.json(v.flatten(result.issues).nested, { status: 422 });
  },
};
