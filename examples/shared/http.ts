// Answers that every example's API gives alike: JSON always, a sentence with every refusal.

/** Thrown where a request cannot be served as it is; becomes a JSON answer with that status. */
export class Refusal extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

export const json = (value: unknown, status = 200, headers: HeadersInit = {}): Response =>
  Response.json(value, { status, headers: { "cache-control": "no-store", ...headers } });

/** Wraps a fetch handler: refusals become answers, other errors stay errors and reach the log. */
export function api<Env>(
  handle: (request: Request, env: Env, ctx: ExecutionContext, url: URL) => Response | Promise<Response>,
): ExportedHandler<Env> {
  return {
    async fetch(request, env, ctx) {
      try {
        return await handle(request as unknown as Request, env, ctx, new URL(request.url));
      } catch (error) {
        if (error instanceof Refusal) return json({ error: error.message }, error.status);
        throw error;
      }
    },
  };
}

/** The request's body as an object. */
export async function body(request: Request): Promise<Record<string, unknown>> {
  let value: unknown;
  try {
    value = await request.json();
  } catch {
    throw new Refusal(400, "The body must be JSON.");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Refusal(400, "The body must be a JSON object.");
  return value as Record<string, unknown>;
}

/** A text field of a body or a query, not longer than `most`. */
export function text(value: unknown, name: string, most = 100): string {
  if (typeof value !== "string" || value.trim() === "") throw new Refusal(400, `"${name}" must be a text.`);
  if (value.length > most) throw new Refusal(400, `"${name}" may have at most ${most} characters.`);
  return value.trim();
}

/** A whole number between two bounds; `otherwise` where none is given. */
export function whole(value: unknown, name: string, least: number, most: number, otherwise?: number): number {
  if ((value === undefined || value === null || value === "") && otherwise !== undefined) return otherwise;
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof number !== "number" || !Number.isInteger(number) || number < least || number > most)
    throw new Refusal(400, `"${name}" must be a whole number from ${least} to ${most}.`);
  return number;
}

export function post(request: Request): void {
  if (request.method !== "POST") throw new Refusal(405, "Use POST.");
}

export function notFound(url: URL): Response {
  return json({ error: `There is nothing at ${url.pathname}.` }, 404);
}
