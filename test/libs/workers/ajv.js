// ajv compiles a schema to code while the script starts, which the platform allows, and only then.
import Ajv from "ajv";

const ajv = new Ajv({ allErrors: true, logger: false });
const validate = ajv.compile({
  type: "object",
  properties: {
    name: { type: "string", minLength: 2 },
    tags: { type: "array", items: { enum: ["a", "b"] }, uniqueItems: true },
    size: { $ref: "#/$defs/size" },
  },
  required: ["name"],
  additionalProperties: false,
  $defs: { size: { type: "integer", multipleOf: 5 } },
});

export default {
  async fetch(request) {
    if (new URL(request.url).pathname === "/late") {
      try {
        ajv.compile({ type: "string" });
      } catch (error) {
        return new Response(error.name);
      }
    }
    return validate(await request.json())
      ? new Response("valid")
      : Response.json(validate.errors.map((error) => `${error.instancePath} ${error.keyword}`), { status: 422 });
  },
};
