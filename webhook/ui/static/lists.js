// The lists: queue, gangs, decisions, policies, health, and the figures above them.

import { age, count, gangLink, keyed, make, moment, plainName, printable, sentence, setText, short } from "./dom.js";

const PAGE = 100; // rows that are shown at first, and added by the button

const STATES = {
  running: "runs", starting: "starts", admitted: "admitted", waiting: "waits", stuck: "lost its place",
};

/** A table of at most `shown` rows, and a button for more. */
class LongTable extends HTMLElement {
  #rows = new Map();
  #shown = PAGE;
  #body = make("tbody");
  #more = make("button", { type: "button", hidden: true });
  #empty = make("p", { class: "quiet", hidden: true });
  #scroll;

  connectedCallback() {
    const head = make("tr", {}, ...this.columns.map((text, place) => make("th", { scope: "col", text, class: this.words.includes(place) && "left" })));
    const table = make("table", {}, make("thead", {}, head), this.#body);
    const label = this.closest("section").getAttribute("aria-labelledby");
    this.#scroll = make("div", { class: "scroll", role: "group", tabindex: "0", "aria-labelledby": label }, table);
    this.#more.addEventListener("click", () => {
      this.#shown += PAGE;
      this.render(this.picture);
    });
    this.append(this.#empty, this.#scroll, this.#more);
  }

  render(picture) {
    this.picture = picture;
    const entries = this.entries(picture);
    const shown = new Map(entries.slice(0, this.#shown));
    this.#scroll.hidden = !entries.length;
    this.#empty.hidden = Boolean(entries.length);
    setText(this.#empty, picture.search ? "nothing of that in it" : this.none);
    this.#more.hidden = entries.length <= this.#shown;
    setText(this.#more, `show ${Math.min(PAGE, entries.length - this.#shown)} more of ${entries.length}`);
    keyed(this.#body, this.#rows, [...shown.keys()], () => make("tr"), (key, row) => this.#fill(row, this.cells(key, shown.get(key))));
  }

  /** The cells of a row; those whose text is the same are left. */
  #fill(row, cells) {
    cells.forEach((cell, place) => {
      const before = row.children[place];
      const content = typeof cell === "string" || typeof cell === "number" ? printable(cell) : cell;
      const text = typeof content === "string" ? content : content.textContent;
      if (before && before.textContent === text) return;
      const look = this.words.includes(place) && "left";
      const element = place === this.heading ? make("th", { scope: "row", class: look }) : make("td", { class: look });
      element.append(content);
      if (before) before.replaceWith(element);
      else row.append(element);
    });
  }
}

class BayQueue extends LongTable {
  columns = ["#", "gang", "pods", "GPUs", "priority", "since", "waits for"];
  words = [1, 6]; // columns of words, not of numbers
  heading = 1;
  none = "nobody waits";

  entries(picture) {
    return picture.queue().filter(([name, gang]) => picture.matches(name, gang.waitsFor ?? ""));
  }

  cells(name, gang) {
    return [gang.position, gangLink(name), gang.pods.wanted, gang.gpus, gang.priority, age(gang.created), sentence(gang.waitsFor)];
  }
}

class BayGangs extends LongTable {
  columns = ["sign", "gang", "state", "place", "pods on nodes", "GPUs", "priority", "since"];
  words = [1, 2, 3];
  heading = 1;
  none = "no gang holds or waits";

  entries(picture) {
    return picture.gangs();
  }

  cells(name, gang) {
    const pods = `${gang.pods.bound} of ${gang.pods.wanted}`;
    return [gang.letter, gangLink(name), STATES[gang.state], sentence(gang.place, "place"), pods, gang.gpus, gang.priority, age(gang.created)];
  }
}

class BayDecisions extends LongTable {
  columns = ["time", "about", "what", "message"];
  words = [0, 1, 2, 3];
  heading = 1;
  none = "nothing was decided yet";

  entries(picture) {
    return picture.decisions();
  }

  cells(_, told) {
    const known = this.picture.sections.gangs.has(told.name);
    const what = make("span", { class: told.warning ? "warn" : "", text: short(told.policy ? `${told.policy}: ${told.kind}` : told.kind) });
    return [moment(told.time), known ? gangLink(told.name) : plainName(told.name), what, sentence(told.message)];
  }
}

class BayPolicies extends LongTable {
  columns = ["policy", "failed", "warned", "errors", "changed", "passed"];
  words = [0];
  heading = 0;
  none = "no policy told of itself";
  #revisions = make("p", { class: "quiet name" });

  connectedCallback() {
    super.connectedCallback();
    this.prepend(this.#revisions);
  }

  render(picture) {
    super.render(picture);
    const names = picture.page.revisions;
    this.#revisions.hidden = !names.length;
    setText(this.#revisions, printable(`${names.length === 1 ? "revision" : `${count(names.length, "revision")} decide:`} ${names.join(", ")}`));
  }

  entries(picture) {
    return [...picture.sections.policies].filter(([name]) => picture.matches(name));
  }

  cells(name, policy) {
    const sums = {};
    for (const counts of Object.values(policy.namespaces)) {
      for (const [result, number] of Object.entries(counts)) sums[result] = (sums[result] ?? 0) + number;
    }
    return [plainName(name), ...["fail", "warn", "error", "changed", "pass"].map((result) => sums[result] ?? 0)];
  }
}

class BayHealth extends HTMLElement {
  render(picture) {
    const lines = [...picture.sections.health].sort(([, a], [, b]) => a.place - b.place);
    this.replaceChildren(make("ul", { class: "findings" }, ...lines.map(([name, line]) => make("li", {},
      make("span", { class: `mark ${MARKS[line.state]}`, text: WORDS[line.state] }),
      make("p", { text: `${name}: ${line.message}` })))));
    if (!lines.length) this.replaceChildren(make("p", { class: "quiet", text: "nothing is told of it" }));
  }
}

const MARKS = { ok: "pass", warning: "warn", problem: "fail" };
const WORDS = { ok: "well", warning: "look", problem: "wrong" };

/** The figures of the whole cluster. */
class BaySummary extends HTMLElement {
  #figures = new Map();
  #list = make("dl", { class: "fates" });

  connectedCallback() {
    this.append(this.#list);
  }

  render(picture) {
    const whole = [...picture.sections.racks.values()].filter((rack) => rack.depth < 0);
    const gangs = [...picture.sections.gangs.values()];
    const troubles = [...picture.sections.health.values()].filter((line) => line.state !== "ok").length;
    const figures = {
      "GPUs free": whole.length ? `${sum(whole, "free")} of ${sum(whole, "gpus")}` : null,
      nodes: whole.length ? sum(whole, "nodes") : null,
      "gangs with a place": gangs.filter((gang) => !gang.position && gang.state !== "stuck").length,
      "gangs that wait": gangs.filter((gang) => gang.position || gang.state === "stuck").length,
      "health warnings": troubles,
    };
    const keys = Object.keys(figures).filter((name) => figures[name] !== null);
    keyed(this.#list, this.#figures, keys, (name) => make("div", {}, make("dt", { text: name }), make("dd")),
      (name, element) => setText(element.lastChild, String(figures[name])));
  }
}

function sum(racks, field) {
  return racks.reduce((total, rack) => total + (rack[field] ?? 0), 0);
}

customElements.define("bay-queue", BayQueue);
customElements.define("bay-gangs", BayGangs);
customElements.define("bay-decisions", BayDecisions);
customElements.define("bay-policies", BayPolicies);
customElements.define("bay-health", BayHealth);
customElements.define("bay-summary", BaySummary);

export { STATES };
