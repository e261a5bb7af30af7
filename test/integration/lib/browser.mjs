// Pages in headless Chromium: a page that fails the test on any error it logs.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
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
    page.setDefaultTimeout(20_000);
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
