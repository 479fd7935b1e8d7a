// What both pages are judged by: what sticks out of the screen, heads that are broken, what axe-core finds.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

/** Chromium and axe-core as `.ci/build-browser` installed them in the folder `tools`. */
export function installed(tools) {
  const require = createRequire(join(tools, "package.json"));
  const { chromium } = require("playwright-core");
  return { chromium, axe: readFileSync(require.resolve("axe-core/axe.min.js"), "utf8") };
}

export function shape(tab) {
  return tab.evaluate(() => {
    const edge = document.documentElement.clientWidth;
    const scrolls = (element) => element.closest(".scroll, .diff, .said");
    const seen = [...document.querySelectorAll("header *, main *, footer *")].filter((e) => e.checkVisibility());
    const out = seen.filter((e) => !scrolls(e) && e.getBoundingClientRect().right > edge + 0.5);
    const high = (e) => e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight);
    // Words of at most 16 letters that begin on one line and end on another.
    const brokenWords = (elements) => [...elements].filter((e) => e.checkVisibility()).flatMap((element) => {
      const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      const broken = [];
      for (let node = texts.nextNode(); node; node = texts.nextNode()) {
        if (!node.parentElement.checkVisibility() || node.parentElement.closest("code")) continue;
        for (const { 0: word, index } of node.data.matchAll(/[^\s/-]{2,16}(?=[\s/-]|$)/g)) {
          if (index && !/[\s/-]/.test(node.data[index - 1])) continue; // the end of a longer one
          const range = document.createRange();
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          if (new Set([...range.getClientRects()].map((rect) => Math.round(rect.top))).size > 1) broken.push(word);
        }
      }
      return broken;
    });
    return {
      overflow: document.documentElement.scrollWidth > edge,
      sticksOut: out.map((e) => e.outerHTML.slice(0, 200)),
      brokenHeads: [...document.querySelectorAll("thead th")].filter((e) => high(e) > 2).map((e) => e.textContent),
      brokenWords: brokenWords(document.querySelectorAll("td, th, dd, h2")),
      ground: getComputedStyle(document.body).backgroundColor,
    };
  });
}

export async function faults(tab, axe) {
  if (!(await tab.evaluate(() => "axe" in window))) await tab.evaluate(axe);
  const found = await tab.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.map((v) => [v.id, v.help, v.nodes.slice(0, 3).map((node) => node.html)]);
}
