// The bundler within cairn-bundler: src/bundler/main.c evaluates it and keeps what its last expression gives.
import native from "./native.mjs";
import "./globals.mjs";
import { ended, received } from "./child_process.mjs";
import { run } from "../bundler.mjs";

globalThis.__host = {
  received,
  ended,
  async run(line) {
    native.answer(JSON.stringify(await run(line)));
  },
};
