export default defineEventHandler(async (event) => {
  const { text } = await readBody(event);
  if (!text) throw createError({ statusCode: 422, statusMessage: "a text is missing", data: { field: "text" } });
  await event.context.cloudflare.env.NOTES.put(text, "1");
  setResponseStatus(event, 201);
  return { text };
});
