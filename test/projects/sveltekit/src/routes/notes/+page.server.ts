import { fail, redirect } from "@sveltejs/kit";

export async function load({ platform, cookies }) {
  const { keys } = await platform.env.NOTES.list();
  return { notes: keys.map((key) => key.name), last: cookies.get("last") ?? null };
}
export const actions = {
  async add({ request, platform, cookies }) {
    const text = (await request.formData()).get("text");
    if (!text) return fail(400, { missing: true });
    await platform.env.NOTES.put(String(text), "1");
    cookies.set("last", String(text), { path: "/" });
    return { added: text };
  },
  async clear({ platform }) {
    for (const { name } of (await platform.env.NOTES.list()).keys) await platform.env.NOTES.delete(name);
    redirect(303, "/notes");
  },
};
