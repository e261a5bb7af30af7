// Pages in headless Chromium: a page that fails the test on any error it logs.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { chromium } from "playwright-core";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Why pages cannot be tested here, for `skip`; false if they can. */
export const noBrowser = existsSync(executablePath) ? false : `${executablePath} is not there; \`make test\` installs it`;

// One browser for all tests of a file; it ends with the last page.
let browser, users = 0;

/**
 * Runs `use(page)` on a new page of that width; fails if the page logged an error, unless it is one of those
 * `expected` (a pattern), as a browser logs every answer with an error status.
 */
export async function withPage({ width = 1000, height = 800, expected, ...options }, use) {
  users++;
  browser ??= chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  const context = await (await browser).newContext({ viewport: { width, height }, ...options });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    const problems = [];
    page.on("console", (message) => message.type() === "error" && !expected?.test(message.text()) && problems.push(message.text()));
    page.on("pageerror", (error) => problems.push(String(error)));
    await use(page);
    assert.deepEqual(problems, [], "the page logged errors");
  } finally {
    await context.close();
    users--;
  }
}

/** For `after`: ends the browser. */
export async function closeBrowser() {
  assert.equal(users, 0);
  await (await browser)?.close();
  browser = undefined;
}

/** True if nothing on the page is wider than the window. */
export async function fits(page) {
  return page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
}

/** What pages are looked at in: a phone and a desk, by day and by night. */
export const VIEWS = [390, 1280].flatMap((width) => ["light", "dark"].map((colorScheme) => ({ width, colorScheme })));

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * Fails unless the page as it is now fits its window and axe-core finds nothing serious in it: contrast of 4.5:1, labels, names,
 * landmarks. With SCREENSHOTS=FOLDER also a picture of it, `name` and the view in its name.
 */
export async function inspect(page, name, { full = true } = {}) {
  const { width } = page.viewportSize();
  const theme = await page.evaluate(() => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  if (process.env.SCREENSHOTS) await page.screenshot({ path: path.join(process.env.SCREENSHOTS, `${name}-${width}-${theme}.png`), fullPage: full });
  assert.ok(await fits(page), `${name} is wider than ${width}`);
  // What is being read again is faded for a moment, on a slow machine at any moment: its contrast is that of the page at rest.
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(".stale { opacity: 1 !important; transition: none !important; }");
    document.adoptedStyleSheets = [sheet];
  });
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const text = serious.map(({ id, help, nodes }) => `${id}: ${help}\n${nodes.slice(0, 5).map((node) => `  ${node.html}\n  ${node.failureSummary}`).join("\n")}`).join("\n");
  assert.equal(serious.length, 0, `${name}, ${width}, ${theme}:\n${text}`);
}
