// Looks at pages in Chromium and prints what is there, as JSON: for each page, width and theme the errors on the
// console, what sticks out, headings that are broken, and what axe-core finds; and once for each page what the
// filters leave, and whether the keyboard reaches them. It judges nothing: tests/browser/test_report_page.py does.
//
// node look.mjs TOOLS ORDER: TOOLS is the folder of .ci/build-browser, ORDER a file {pages, widths, themes, shots}.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { faults, installed, shape } from "./shape.mjs";

const [tools, orderFile] = process.argv.slice(2);
const { chromium, axe } = installed(tools);
const order = JSON.parse(readFileSync(orderFile, "utf8"));

// The page's own policy forbids scripts: the tests' axe-core is let in, and nothing else changes.
const browser = await chromium.launch({ executablePath: order.chromium, args: ["--no-sandbox"] });
const looks = [];
const uses = [];
for (const page of order.pages) {
  const { context, tab, news } = await open(page, true);
  for (const theme of order.themes) {
    for (const width of order.widths) looks.push(await look(page, tab, news, width, theme));
  }
  await context.close();
  uses.push(await use(page));
}
await browser.close();
process.stdout.write(JSON.stringify({ looks, uses }));

async function open(page, bypassCSP) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, bypassCSP });
  const tab = await context.newPage();
  const news = [];
  tab.on("console", (message) => news.push(message.text()));
  tab.on("pageerror", (error) => news.push(String(error)));
  tab.on("request", (request) => request.url().startsWith("file:") || news.push(request.url()));
  await tab.goto(pathToFileURL(page.path).href);
  return { context, tab, news };
}

async function look(page, tab, news, width, theme) {
  await tab.setViewportSize({ width, height: 900 });
  await tab.emulateMedia({ colorScheme: theme });
  const seen = await shape(tab);
  await tab.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
  const axeSays = await faults(tab, axe);
  await tab.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = false)));
  if (order.shots) {
    await tab.screenshot({ path: join(order.shots, `${page.name}-${width}-${theme}.png`), fullPage: true });
  }
  return { page: page.name, width, theme, console: [...news], ...seen, axe: axeSays };
}

async function use(page) {
  const { context, tab, news } = await open(page, false);
  const shown = () => tab.$$eval(".object", (all) => all.filter((e) => e.checkVisibility()).map((e) => e.className));
  const all = await shown();
  const filtered = {};
  for (const value of await tab.$$eval("option", (options) => options.map((o) => o.value).filter(Boolean))) {
    const select = tab.locator(`select:has(option[value="${value}"])`);
    await select.selectOption(value);
    filtered[value] = await shown();
    await tab.locator("button[type=reset]").click();
  }
  const afterReset = await shown();
  await tab.evaluate(() => document.activeElement.blur());
  const reached = [];
  for (let step = 0; step < 60; step += 1) {
    await tab.keyboard.press("Tab");
    reached.push(await tab.evaluate(() => document.activeElement.tagName.toLowerCase()));
  }
  let opened = null;
  if (await tab.locator("summary").count()) {
    await tab.locator("summary").first().focus();
    await tab.keyboard.press("Enter");
    opened = await tab.locator("details").first().evaluate((details) => details.open);
  }
  await context.close();
  return { page: page.name, console: news, all, filtered, afterReset, reached, opened };
}
