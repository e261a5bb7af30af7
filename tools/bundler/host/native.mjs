// What src/bundler/ provides: main.c has the list.
const native = globalThis.__native;
delete globalThis.__native;
export default native;
