// Search, the menu of a narrow window, light and dark, copying of commands. Without it the pages are all there.
const top_ = document.body.dataset.top, query = document.querySelector("#query"), results = document.querySelector("#results");
const menu = document.querySelector("#menu"), menuButton = document.querySelector("#menu-button");

// --- search: every word must be there; a word in a title counts more than one in the text, and one in a long table little
let loading;
const load = () => (loading ??= new Promise((resolve, reject) => {
  const script = document.createElement("script");
  script.src = `${top_}/search-index.js`;
  script.onload = () => resolve(window.searchIndex.map(([address, page, title, text]) => ({ address, page, title, text, low: [page, title, text].map((each) => each.toLowerCase()) })));
  script.onerror = reject;
  document.head.append(script);
}));

const LESS = /^(?:inside\/|reference\/(?:compatibility|libraries)|CHANGELOG)/;
function weigh({ address, low: [page, title, text] }, words) {
  let sum = 0;
  for (const word of words) {
    const one = (title.includes(word) ? (title.startsWith(word) ? 24 : 16) : 0) + (page.includes(word) ? 8 : 0) + Math.min(4, text.split(word).length - 1) / (1 + text.length / 4000);
    if (!one) return 0;
    sum += one;
  }
  return LESS.test(address) ? sum / 4 : sum;
}

/** A piece of the text around the first word, with all of them marked; nothing of it is HTML. */
function excerpt(text, words) {
  const at = Math.max(0, ...[text.toLowerCase().indexOf(words[0])]), from = Math.max(0, at - 60);
  const p = document.createElement("p");
  p.append(from ? "…" : "");
  const pattern = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "gi");
  text.slice(from, from + 180).split(pattern).forEach((part, i) => {
    if (i % 2) p.append(Object.assign(document.createElement("mark"), { textContent: part }));
    else p.append(part);
  });
  return p;
}

async function search() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return void (results.hidden = true);
  const index = await load();
  const found = index.map((each) => [weigh(each, words), each]).filter(([weight]) => weight).sort((a, b) => b[0] - a[0]).slice(0, 20);
  results.replaceChildren(...found.map(([, { address, page, title, text }]) => {
    const link = Object.assign(document.createElement("a"), { href: `${top_}/${address}` });
    link.append(Object.assign(document.createElement("strong"), { textContent: title && title !== page ? `${page} › ${title}` : page }), excerpt(text, words));
    return link;
  }));
  if (!found.length) results.textContent = "Nothing has all of these words.";
  results.hidden = false;
}
query.addEventListener("input", search);
query.addEventListener("focus", load);
document.querySelector("#search").addEventListener("submit", (event) => {
  event.preventDefault();
  results.querySelector("a")?.click();
});
document.addEventListener("keydown", (event) => {
  const typing = /INPUT|TEXTAREA/.test(document.activeElement.tagName);
  if (event.key === "/" && !typing) { event.preventDefault(); query.focus(); }
  if (event.key === "Escape") { results.hidden = true; query.blur(); }
  if (!results.hidden && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    const all = [...results.querySelectorAll("a")], at = all.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
    (all[at] ?? query).focus();
    event.preventDefault();
  }
});
document.addEventListener("click", (event) => { if (!results.contains(event.target) && event.target !== query) results.hidden = true; });

// --- menu, theme, copy
menuButton.addEventListener("click", () => {
  const open = menu.classList.toggle("open");
  menuButton.setAttribute("aria-expanded", open);
});
document.querySelector("#theme").addEventListener("click", () => {
  const { dataset } = document.documentElement;
  const dark = dataset.theme ? dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", dataset.theme);
});
for (const block of document.querySelectorAll("pre.of-sh")) {
  const button = Object.assign(document.createElement("button"), { className: "copy", textContent: "Copy" });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.append(button);
}
document.querySelector('#menu [aria-current="page"]')?.scrollIntoView({ block: "nearest" });
