// Flame graphs of what `perf script -F comm,ip,sym,dso` prints: stacks are counted, shared beginnings are one box.

/** Where code is, by its file, in the order of the tables. */
export const PLACES = ["kernel", "compiled JavaScript", "engine", "SQLite", "cairn", "libc", "others"];
const FILES = [
  [/^\[kernel|^\[vdso|\.ko$/, "kernel"],
  [/\/perf-\d+\.map$|\/\/anon/, "compiled JavaScript"],
  [/javascriptcore/, "engine"],
  [/\/cairn$/, "cairn"],
  [/libc\.so|libm\.so|ld-linux/, "libc"],
];
const placeOf = (file) => FILES.find(([pattern]) => pattern.test(file))?.[1] ?? "others";
const COLOURS = { kernel: "#d9a441", "compiled JavaScript": "#7fb069", engine: "#5f8fb5", SQLite: "#b56576", cairn: "#e26d5a", libc: "#a8a29e", others: "#c9c2b8" };

/** SQLite is part of the binary: what its functions call is its own, until one of Cairn's is called back. */
function markSqlite(frames) {
  let inside = false;
  for (const frame of frames) {
    if (frame.place !== "cairn") {
      if (frame.place !== "libc") inside = false;
      continue;
    }
    if (/^(cn|native)_/.test(frame.name)) inside = false;
    else if (/^sqlite3/.test(frame.name)) inside = true;
    if (inside) frame.place = "SQLite";
  }
}

/** @returns {{ frames: { name: string, place: string }[], count: number }[]} from the outermost to the innermost; the first is the thread. */
export function fold(text) {
  const stacks = new Map();
  for (const sample of text.split(/\n\n+/)) {
    const [head, ...lines] = sample.split("\n").filter((line) => line.trim() !== "");
    if (head === undefined || lines.length === 0) continue;
    const frames = lines.map((line) => {
      const [, symbol, file] = /^\s*[0-9a-f]+ (.*) \((.*)\)$/.exec(line) ?? [null, "?", ""];
      const place = placeOf(file);
      const name = symbol === "[unknown]" ? place : symbol.replace(/\+0x[0-9a-f]+$/, "").replace(/\.(isra|constprop|part|cold)(\.\d+)*/g, "");
      return { name, place };
    }).reverse();
    markSqlite(frames);
    // Runs of frames without a name are one; what is in no file at all is where the way back was lost.
    const known = frames.filter(({ place, name }, i) => i === frames.length - 1 || place !== "others" || name !== "others");
    const whole = [{ name: head.trim(), place: "others" }, ...known.filter((frame, i) => i === 0 || frame.name !== known[i - 1].name)];
    const key = whole.map(({ name }) => name).join(";");
    const same = stacks.get(key);
    if (same) same.count++;
    else stacks.set(key, { frames: whole, count: 1 });
  }
  return [...stacks.values()];
}

/** Shares of where the innermost frames are, and the innermost frames that have names, largest first. */
export function shares(stacks) {
  const places = Object.fromEntries(PLACES.map((place) => [place, 0])), names = new Map();
  const total = stacks.reduce((sum, { count }) => sum + count, 0) || 1;
  for (const { frames, count } of stacks) {
    const { name, place } = frames.at(-1);
    places[place] += count / total;
    if (name !== place) names.set(name, (names.get(name) ?? 0) + count / total);
  }
  return { places, top: [...names].sort((a, b) => b[1] - a[1]) };
}

const escape = (text) => text.replace(/[<>&"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

/** An SVG that needs nothing else: widths are shares of time, a box's children stand on it; names and shares are its titles. */
export function draw(stacks, title) {
  const WIDTH = 1200, ROW = 16, LEAST = 0.4;
  const tree = { name: title, place: "others", count: 0, children: new Map() };
  let depth = 1;
  for (const { frames, count } of stacks) {
    let at = tree;
    at.count += count;
    depth = Math.max(depth, frames.length + 1);
    for (const frame of frames) {
      if (!at.children.has(frame.name)) at.children.set(frame.name, { ...frame, count: 0, children: new Map() });
      at = at.children.get(frame.name);
      at.count += count;
    }
  }
  const height = depth * ROW + 40, boxes = [];
  const put = (box, x, level) => {
    const width = (box.count / (tree.count || 1)) * WIDTH;
    if (width < LEAST) return;
    const y = height - 30 - level * ROW, fits = Math.floor(width / 6.6);
    boxes.push(`<g><title>${escape(box.name)}: ${((box.count * 100) / (tree.count || 1)).toFixed(2)} %</title><rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${ROW - 1}" fill="${COLOURS[box.place]}"/>` +
      (fits > 2 ? `<text x="${(x + 3).toFixed(1)}" y="${y + 11}">${escape(box.name.length > fits ? `${box.name.slice(0, fits - 1)}…` : box.name)}</text>` : "") + "</g>");
    let next = x;
    for (const child of [...box.children.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      put(child, next, level + 1);
      next += (child.count / (tree.count || 1)) * WIDTH;
    }
  };
  put(tree, 0, 1);
  const legend = PLACES.map((place, i) => `<rect x="${10 + i * 165}" y="6" width="11" height="11" fill="${COLOURS[place]}"/><text x="${25 + i * 165}" y="15">${place}</text>`).join("");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="11">\n<rect width="100%" height="100%" fill="#fffdf8"/>\n${legend}\n${boxes.join("\n")}\n</svg>\n`;
}
