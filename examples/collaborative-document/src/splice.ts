// Changes of a text: at a place, cut so many characters and put others there. The page has the same
// functions (it gets this file's text), so that both sides agree.
export interface Splice {
  at: number;
  cut: number;
  put: string;
}

export function apply(text: string, { at, cut, put }: Splice): string {
  return text.slice(0, at) + put + text.slice(at + cut);
}

/** The smallest splice that turns `from` into `to`, or null if they are equal. */
export function diff(from: string, to: string): Splice | null {
  if (from === to) return null;
  let start = 0;
  while (start < from.length && from[start] === to[start]) start++;
  let end = 0;
  while (end < from.length - start && end < to.length - start && from[from.length - 1 - end] === to[to.length - 1 - end]) end++;
  return { at: start, cut: from.length - start - end, put: to.slice(start, to.length - end) };
}

/**
 * `change` as it must be made after `other`, which was made on the same text. Where both insert at one
 * place, `other` comes first. What the other has put inside of what this one cuts goes with it.
 */
export function transform(change: Splice | null, other: Splice | null): Splice | null {
  if (change === null || other === null) return change;
  const end = change.at + change.cut;
  const otherEnd = other.at + other.cut;
  const grown = other.put.length - other.cut;
  if (end < other.at || (end === other.at && change.cut > 0)) return change;
  if (change.at >= otherEnd) return { ...change, at: change.at + grown };
  // They overlap: what is left to be cut, and where that begins.
  if (change.at < other.at) {
    const kept = end > otherEnd ? end + grown : other.at;
    return { ...change, cut: kept - change.at };
  }
  const at = other.at + other.put.length;
  return { ...change, at, cut: Math.max(0, end - otherEnd) };
}
