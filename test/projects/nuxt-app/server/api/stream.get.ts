export default defineEventHandler((event) => {
  const stream = createEventStream(event);
  void (async () => {
    for (let i = 0; i < 3; i++) await stream.push(`n ${i}`);
    await stream.close();
  })();
  return stream.send();
});
