// Looks at the live page in Chromium and prints what is there, as JSON. It judges nothing: test_ui_page.py does.
//
// node watch.mjs TOOLS ORDER: TOOLS is the folder of .ci/build-browser, ORDER a file {task, url, …}, where the task
// is one of those below.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { faults, installed, shape } from "./shape.mjs";

const [tools, orderFile] = process.argv.slice(2);
const { chromium, axe } = installed(tools);
const order = JSON.parse(readFileSync(orderFile, "utf8"));
const PATIENCE = 60_000; // ms for what must come some time, however busy the machine is

const browser = await chromium.launch({ executablePath: order.chromium, args: ["--no-sandbox"] });
process.stdout.write(JSON.stringify(await { looks, picture, use, live, login, speed }[order.task]()));
await browser.close();

async function open(bypassCSP) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, bypassCSP });
  const tab = await context.newPage();
  tab.setDefaultTimeout(PATIENCE);
  const news = [];
  tab.on("console", (message) => news.push(message.text()));
  tab.on("pageerror", (error) => news.push(String(error)));
  tab.on("request", (request) => request.url().startsWith(new URL(order.url).origin) || news.push(request.url()));
  await tab.goto(order.url);
  if (order.ready) await tab.waitForSelector(order.ready);
  return { context, tab, news };
}

/** Each width and theme; then with the gang `order.gang` chosen too. The page's policy lets axe-core in for this. */
async function looks() {
  const { tab, news } = await open(true);
  const seen = [];
  for (const chosen of ["", `#gang=${encodeURIComponent(order.gang)}`]) {
    await tab.evaluate((hash) => (location.hash = hash), chosen);
    if (chosen) await tab.waitForFunction(() => document.querySelector("bay-detail .facts"));
    for (const theme of order.themes) {
      for (const width of order.widths) {
        await tab.setViewportSize({ width, height: 900 });
        await tab.emulateMedia({ colorScheme: theme });
        await tab.evaluate(() => scrollTo(0, 0));
        const page = chosen ? "chosen" : "plain";
        if (order.shots) await tab.screenshot({ path: join(order.shots, `ui-${order.name}-${page}-${width}-${theme}.png`) });
        seen.push({ page, width, theme, ...(await shape(tab)), axe: await faults(tab, axe), console: [...news] });
      }
    }
  }
  return seen;
}

/** The picture of README: the page as it is, with a gang chosen. */
async function picture() {
  const { tab } = await open(false);
  await tab.setViewportSize({ width: 1280, height: 720 });
  await tab.emulateMedia({ colorScheme: "light" });
  await tab.evaluate((gang) => (location.hash = `#gang=${encodeURIComponent(gang)}`), order.gang);
  await tab.waitForFunction(() => document.querySelector("bay-detail .facts"));
  await tab.waitForFunction(() => ![...document.querySelectorAll("bay-detail dd")].some((e) => e.innerText === "…"));
  await tab.evaluate(() => document.activeElement.blur());
  await tab.screenshot({ path: order.file });
  return {};
}

/** From a gang to its rack and back, by the mouse and by the keyboard; what search leaves. */
async function use() {
  const { tab, news } = await open(false);
  const title = () => tab.locator("bay-detail h2").textContent();
  const steps = [];
  await tab.locator("bay-gangs a", { hasText: order.gang }).click();
  await tab.waitForSelector("bay-detail .links a");
  steps.push(await title());
  const worth = await tab.waitForFunction(() => {
    const row = [...document.querySelectorAll("bay-detail .facts div")].find((e) => e.textContent.startsWith("worth"));
    return row && !row.textContent.includes("…") ? row.textContent : "";
  });
  const marked = await tab.locator(".racks .chosen .title").allTextContents();
  await tab.locator('bay-detail a[href^="#rack="]').first().click();
  await tab.waitForFunction((gang) => document.querySelector("bay-detail h2").textContent !== gang, steps[0]);
  steps.push(await title());
  await tab.locator('bay-detail .links a[href^="#gang="]').first().click();
  await tab.waitForFunction((rack) => document.querySelector("bay-detail h2").textContent !== rack, steps[1]);
  steps.push(await title());
  await tab.goBack();
  await tab.waitForFunction((gang) => document.querySelector("bay-detail h2").textContent !== gang, steps[2]);
  steps.push(await title());
  await tab.locator("bay-detail .close").focus();
  await tab.keyboard.press("Enter");
  await tab.waitForFunction(() => document.querySelector("bay-detail").hidden);
  const rows = (list) => tab.locator(`${list} tbody tr`).count();
  const before = await rows("bay-gangs");
  await tab.locator("#search").fill(order.search);
  await tab.waitForFunction((count) => document.querySelectorAll("bay-gangs tbody tr").length !== count, before);
  const searched = { gangs: await rows("bay-gangs"), bright: await tab.locator(".racks li:not(.dim) .title").allTextContents() };
  await tab.locator("#search").fill("");
  await tab.waitForFunction((count) => document.querySelectorAll("bay-gangs tbody tr").length === count, before);
  const long = tab.locator("bay-queue details.words").first();
  const folded = [await long.innerText()];
  await long.locator("summary").click();
  folded.push(await long.innerText());
  const times = await tab.locator("bay-decisions time").evaluateAll((all) => all.map((e) => e.dateTime));
  const texts = await tab.evaluate(() => Object.fromEntries(["bay-summary", "bay-queue", "bay-gangs", "bay-decisions",
    "bay-policies", "bay-health"].map((name) => [name, document.querySelector(name).innerText])));
  await tab.evaluate(() => document.activeElement.blur());
  const reached = new Set();
  for (let step = 0; step < order.tabs; step += 1) {
    await tab.keyboard.press("Tab");
    reached.add(await tab.evaluate(() => document.activeElement.closest("bay-map, bay-queue, bay-gangs, bay-decisions, header")?.tagName ?? ""));
  }
  return { steps, marked, worth: await worth.jsonValue(), before, searched, folded, times, texts, reached: [...reached], console: news };
}

/** A file of the cluster changes while the page is open. */
async function live() {
  const { tab, news } = await open(false);
  const before = await tab.locator("bay-gangs").innerText();
  writeFileSync(order.file, order.text);
  await tab.waitForFunction((text) => document.querySelector("bay-gangs").innerText !== text, before);
  const after = await tab.locator("bay-gangs").innerText();
  return { before, after, decisions: await tab.locator("bay-decisions").innerText(), console: news };
}

/** Without a token, with a wrong one, with the right one; then again after a reload. */
async function login() {
  const { tab } = await open(false);
  const asked = [];
  for (const token of ["wrong", order.token]) {
    await tab.waitForSelector("bay-login #token");
    asked.push(await tab.locator("bay-login .warn").textContent());
    await tab.locator("#token").fill(token);
    await tab.locator("bay-login button").click();
  }
  await tab.waitForSelector("bay-gangs tbody tr");
  await tab.reload();
  await tab.waitForSelector("bay-gangs tbody tr");
  return { asked };
}

/** What the first picture and the changes take; the server changes the picture all the time.
 *
 * `changes` is how many changes an update makes to the elements, which is the same on each machine. `cpu` is the time of
 * the page's main thread, in ms, with layout and paint: others may take the processor meanwhile. */
async function speed() {
  const runs = [];
  for (let run = 0; run < order.runs; run += 1) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const tab = await context.newPage();
    tab.setDefaultTimeout(PATIENCE);
    const session = await context.newCDPSession(tab);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const cpu = async () => {
      const { metrics } = await session.send("Performance.getMetrics");
      return 1000 * metrics.find((metric) => metric.name === "TaskDuration").value;
    };
    const updates = () => tab.evaluate(() => performance.getEntriesByName("bayplan:update").length);
    await tab.goto(order.url);
    await tab.waitForFunction(() => performance.getEntriesByName("bayplan:painted").length);
    const first = await cpu();
    await tab.evaluate(() => {
      globalThis.changes = 0;
      const count = (records) => (globalThis.changes += records.length);
      new MutationObserver(count).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    });
    const before = await updates();
    await tab.waitForFunction((count) => performance.getEntriesByName("bayplan:update").length >= count, before + order.updates);
    const all = await cpu();
    const count = (await updates()) - before;
    const changes = (await tab.evaluate(() => globalThis.changes)) / count;
    runs.push({ cpu: { painted: first, update: (all - first) / count }, changes, ...(await tab.evaluate(() => ({
      painted: performance.getEntriesByName("bayplan:painted")[0].startTime,
      updates: performance.getEntriesByName("bayplan:update").map((entry) => entry.duration),
      tiles: document.querySelectorAll(".rack-tile").length,
    }))) });
    if (order.shots && !run) await tab.screenshot({ path: join(order.shots, "ui-large.png") });
    await context.close();
  }
  return runs;
}
