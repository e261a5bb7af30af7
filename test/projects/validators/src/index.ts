import { addBusinessDays, differenceInCalendarDays, eachWeekOfInterval, format, formatDistance, parse } from "date-fns";
import { de } from "date-fns/locale";
import * as jose from "jose";
import * as v from "valibot";
import { z } from "zod";

const Order = z.object({
  id: z.uuid(),
  email: z.email().transform((e) => e.toLowerCase()),
  lines: z.array(z.object({ sku: z.string().regex(/^[A-Z]{2}-\d+$/), count: z.int().positive() })).nonempty(),
  total: z.coerce.number().multipleOf(0.01),
  kind: z.discriminatedUnion("type", [z.object({ type: z.literal("gift"), to: z.string() }), z.object({ type: z.literal("own") })]),
  when: z.iso.datetime().pipe(z.coerce.date()),
});
const Form = v.pipeAsync(
  v.objectAsync({ name: v.pipe(v.string(), v.trim(), v.minLength(2)), age: v.pipe(v.string(), v.transform(Number), v.minValue(18)), user: v.pipeAsync(v.string(), v.checkAsync(async (u) => u !== "taken", "is taken")) }),
  v.forward(v.check((f) => f.name !== f.user, "must differ"), ["user"]),
);
const key = new TextEncoder().encode("a secret of this example, which is 32+ bytes");

const actions: Record<string, (body: any) => Promise<unknown>> = {
  async zod(body) {
    const result = Order.safeParse(body);
    return result.success ? { ok: result.data } : { issues: result.error.issues.map((i) => [i.path.join("."), i.code]), tree: z.treeifyError(result.error) };
  },
  async schema() {
    return z.toJSONSchema(Order, { io: "input", unrepresentable: "any" });
  },
  async valibot(body) {
    const result = await v.safeParseAsync(Form, body);
    return result.success ? { ok: result.output } : v.flatten(result.issues as never);
  },
  async dates({ from, days }) {
    const date = parse(from, "dd.MM.yyyy", new Date(0)), end = addBusinessDays(date, days);
    return { end: format(end, "EEEE, d. MMMM yyyy", { locale: de }), days: differenceInCalendarDays(end, date), weeks: eachWeekOfInterval({ start: date, end }, { weekStartsOn: 1 }).length, distance: formatDistance(end, date, { locale: de }) };
  },
  async jwt({ claims }) {
    const { publicKey, privateKey } = await jose.generateKeyPair("ES256");
    const token = await new jose.SignJWT(claims).setProtectedHeader({ alg: "ES256" }).setExpirationTime("2h").setAudience("shop").sign(privateKey);
    const { payload } = await jose.jwtVerify(token, publicKey, { audience: "shop" });
    const wrong = await jose.jwtVerify(token, publicKey, { audience: "other" }).catch((e) => [e.code, e.claim]);
    const set = jose.createLocalJWKSet({ keys: [{ ...(await jose.exportJWK(publicKey)), alg: "ES256" }] });
    const bySet = await jose.jwtVerify(token, set);
    const sealed = await new jose.EncryptJWT({ a: 1 }).setProtectedHeader({ alg: "dir", enc: "A256GCM" }).encrypt(key.slice(0, 32));
    return { sub: payload.sub, wrong, bySet: bySet.payload.sub, opened: (await jose.jwtDecrypt(sealed, key.slice(0, 32))).payload.a, expired: await expired() };
  },
};
async function expired() {
  const token = await new jose.SignJWT({}).setProtectedHeader({ alg: "HS256" }).setExpirationTime(1).sign(key);
  return jose.jwtVerify(token, key).then(() => "valid", (e) => e.code);
}
export default {
  async fetch(request: Request) {
    return Response.json(await actions[new URL(request.url).pathname.slice(1)](await request.json()));
  },
};
