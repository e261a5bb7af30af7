// Blanks at the ends of a text are cut in one pass. / +$/ would try every run of blanks from each of its characters.

/** `text` without the characters at its end for whose codes `isBlank` holds. */
export function trimEndBy(text, isBlank) {
  let end = text.length;
  while (end > 0 && isBlank(text.charCodeAt(end - 1))) end--;
  return end === text.length ? text : text.slice(0, end);
}

/** The same at its beginning. */
export function trimStartBy(text, isBlank) {
  let start = 0;
  while (start < text.length && isBlank(text.charCodeAt(start))) start++;
  return start === 0 ? text : text.slice(start);
}

export const trimBy = (text, isBlank) => trimStartBy(trimEndBy(text, isBlank), isBlank);

/** Tab, line feed, carriage return and space: the blanks of HTTP and of MIME types. */
export const isHttpBlank = (code) => code === 32 || code === 9 || code === 10 || code === 13;
