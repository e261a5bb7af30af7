export default defineEventHandler(async (event) => {
  const { keys } = await event.context.cloudflare.env.NOTES.list();
  return keys.map((key: { name: string }) => key.name);
});
