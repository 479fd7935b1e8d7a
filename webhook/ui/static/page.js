// The page: events come in, what they change is drawn. Begin here.

import { printable, setText } from "./dom.js";
import { Picture } from "./picture.js";
import { Refused, events } from "./stream.js";
import { token as tokenOfTab } from "./login.js";
import "./map.js";
import "./lists.js";
import "./detail.js";

const FIRST_PAUSE = 1000, LONGEST_PAUSE = 15_000; // ms between tries, doubling
const AGES = 30_000; // ms between two looks at how long ago everything was

const picture = new Picture();
const find = (selector) => document.querySelector(selector);
const map = find("bay-map");
const parts = ["bay-summary", "bay-queue", "bay-gangs", "bay-decisions", "bay-policies", "bay-health"].map(find);
const SECTIONS_OF = {
  "BAY-SUMMARY": ["racks", "gangs", "health"], "BAY-QUEUE": ["gangs"], "BAY-GANGS": ["gangs"],
  "BAY-DECISIONS": ["decisions", "gangs"], "BAY-POLICIES": ["policies", "page"], "BAY-HEALTH": ["health"],
};
let token = tokenOfTab();

/** Draw what changed; what nothing changed in is not looked at. */
function render(changed) {
  setText(find("#source"), printable(picture.page.source));
  if (changed.racks.size || changed.gangs.size) map.render(picture, changed);
  for (const part of parts) {
    if (SECTIONS_OF[part.tagName].some((section) => changed[section].size)) part.render(picture);
  }
  find("bay-detail").render(picture, token, false);
}

/** Everything anew, but for the map. */
function renderLists() {
  for (const part of parts) part.render(picture);
}

function chosen() {
  const [, kind, key] = /^#(gang|rack)=(.*)$/.exec(location.hash) ?? [null, "", ""];
  try {
    return { kind, key: decodeURIComponent(key) };
  } catch {
    return { kind: "", key: "" };
  }
}

function choose() {
  picture.selected = chosen();
  map.render(picture, { racks: new Set() });
  find("bay-detail").render(picture, token, Boolean(picture.selected.kind));
  map.reveal();
}

function takeUp({ type, data }) {
  const first = !picture.sections.racks.size && !picture.sections.gangs.size;
  const start = performance.now();
  const changed = picture.apply(data, type === "whole");
  render(changed);
  if (picture.search) map.find(picture);
  performance.measure(first ? "bayplan:first" : "bayplan:update", { start, end: performance.now() });
  if (first) {
    if (picture.selected.kind) choose();
    requestAnimationFrame(() => setTimeout(() => performance.mark("bayplan:painted")));
  }
}

async function follow() {
  const said = find("#connection");
  let pause = FIRST_PAUSE;
  for (;;) {
    try {
      for await (const event of events("api/events", token)) {
        setText(said, "live");
        pause = FIRST_PAUSE;
        takeUp(event);
      }
      setText(said, "the stream ended: connecting again …");
    } catch (error) {
      if (error instanceof Refused && error.status === 401) {
        setText(said, "not signed in");
        token = await find("bay-login").ask(error.message);
        continue;
      }
      setText(said, printable(`not live: ${error.message || "no answer"}; trying again …`));
    }
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

find("form[role=search]").addEventListener("submit", (event) => event.preventDefault());
find("#search").addEventListener("input", (event) => {
  picture.search = event.target.value.trim().toLowerCase();
  map.find(picture);
  renderLists();
});
addEventListener("hashchange", choose);
setInterval(renderLists, AGES);
picture.selected = chosen();
follow();
