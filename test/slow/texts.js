// The texts of `make slow`, for both sides.

/** In a unit: another number each time, so that its names differ. */
export const NUMBER = "\ue000";

export function textOf(head, unit, tail, length) {
  if (!unit.includes(NUMBER)) return head + unit.repeat(unit === "" ? 0 : length / unit.length) + tail;
  return head + Array.from({ length: length / (unit.length + 4) }, (_, i) => unit.replaceAll(NUMBER, String(i).padStart(5, "0"))).join("") + tail;
}

export const UNITS = [" ", "\t", "\r\n", "a", "0", "/", "\\", "%", "%41", "&", "=", ";", ",", ":", '"', "'", "<", "<a>", "</a", "(", "[", "{", "-", ".", "../", "@", "#", "?", "*", "\0", "\u0100", "\ud800", "\u{1f600}", "\u001b]", "\u009d", "|", "$", "a=b;", "a: b\r\n", "--a\r\n",
  "a&", `x${NUMBER}=1&`, `x${NUMBER}: a\r\n`, `<x${NUMBER}>`, `"x${NUMBER}":1,`];
export const FRAMES = [["", ""], [" a", "b "], ["http://a/", ""], ["a/b;c=\"", ""]];
export const LONG_FRAMES = [["http://", "/"], ["http://a/?", ""], ["data:,", ""], ["<a ", ""], ['{"a":"', ""], ["/", "b"], ["a", "\n"], ["{", '"a":1}']];
