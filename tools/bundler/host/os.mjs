// node:os and node:tty.
import native from "./native.mjs";

export const tmpdir = () => native.temporary;
export const isatty = () => false;
