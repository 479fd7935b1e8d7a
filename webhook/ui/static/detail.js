// What is chosen, a gang or a rack, with all that is known of it, and the way from one to the other.

import { address, count, gangLink, make, moment, plainName, printable } from "./dom.js";
import { STATES } from "./lists.js";
import { headers } from "./stream.js";

const CHOICES = { gang: "gangs", rack: "racks" };

class BayDetail extends HTMLElement {
  #shown = null; // the entry that is on the screen, so that an event about others leaves it
  #worths = new Map(); // by gang and place: it is asked for once

  /** Show what is chosen; `moved`: it was chosen just now, and the focus goes there. */
  render(picture, token, moved) {
    const { kind, key } = picture.selected;
    const entry = picture.sections[CHOICES[kind]]?.get(key) ?? null;
    const decisions = kind === "gang" ? told(picture, key) : [];
    const state = JSON.stringify([kind, key, entry, decisions]);
    this.hidden = !kind;
    if (this.#shown === state && !moved) return;
    this.#shown = state;
    if (!kind) return this.replaceChildren();
    const title = make("h2", { tabindex: "-1", class: "name", text: entry && kind === "rack" ? entry.title : key });
    const close = make("a", { href: "#", class: "close", text: "close", "aria-label": "close what is shown of it" });
    const content = !entry ? [make("p", { class: "quiet", text: "it is not there any more, or it is not yours to see" })]
      : kind === "gang" ? this.#gang(key, entry, decisions, picture, token) : rackContent(entry);
    this.replaceChildren(make("section", { class: "card detail", "aria-label": `chosen ${kind}` }, title, close, ...content));
    if (moved) title.focus();
    return undefined;
  }

  #gang(name, gang, decisions, picture, token) {
    const racks = gang.racks.map((key) => make("li", {}, make("a", {
      href: address("rack", key), class: "name", text: rackName(picture.sections.racks.get(key)) })));
    const created = gang.created ? moment(gang.created) : null;
    return [
      facts({
        state: gang.position ? `${STATES[gang.state]}: ${gang.position} in the queue` : STATES[gang.state],
        place: gang.place,
        "worth of the place": gang.place ? this.#worth(name, gang, token) : null,
        pods: `${gang.pods.bound} of ${gang.pods.wanted} on nodes${gang.pods.gated ? `, ${gang.pods.gated} at the gate` : ""}`,
        GPUs: String(gang.gpus),
        priority: String(gang.priority),
        created,
        reserved: gang.reserved ? moment(gang.reserved) : null,
        reason: gang.reason,
        message: gang.message,
        nodes: gang.holds ? listed(gang.holds.nodes) : null,
      }),
      racks.length ? make("h3", { text: "Racks" }) : null,
      racks.length ? make("ul", { class: "links" }, ...racks) : null,
      ...table("Levels", ["level", "in its best domain now"], (gang.levels ?? []).map((level) => [
        level.level ?? "the whole cluster", `${level.fits} of ${level.wanted} pods fit`])),
      ...table("In the way", ["nodes", "cause"], Object.entries(gang.obstacles ?? {}).sort(([, a], [, b]) => b - a)
        .map(([cause, nodes]) => [String(nodes), cause])),
      ...table("Decisions", ["time", "what", "message"], decisions.map((entry) => [moment(entry.time), entry.kind, entry.message])),
    ].filter((part) => part !== null);
  }

  /** The worth of the place, asked for when a gang is chosen: it is a search over all nodes. */
  #worth(name, gang, token) {
    const element = make("span", { text: "…" });
    const key = JSON.stringify([name, gang.holds]);
    if (!this.#worths.has(key)) {
      if (this.#worths.size > 100) this.#worths.clear();
      this.#worths.set(key, asked(name, token));
    }
    this.#worths.get(key).then((words) => (element.textContent = printable(words)), (error) => {
      this.#worths.delete(key);
      element.textContent = printable(error.message);
    });
    return element;
  }
}

async function asked(name, token) {
  const answer = await fetch(`api/worth?gang=${encodeURIComponent(name)}`, { headers: headers(token), cache: "no-store" });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return (await answer.json()).words;
}

function told(picture, name) {
  return [...picture.sections.decisions.values()].filter((entry) => entry.name === name).sort((a, b) => b.time - a.time).slice(0, 20);
}

function rackName(rack) {
  return rack ? rack.domain.filter(Boolean).join("/") || rack.title : "";
}

function rackContent(rack) {
  const gangs = [...new Set(rack.cells.flatMap(([, , , , whole, parts]) => [whole, ...parts]).filter(Boolean))];
  const rows = rack.cells.map(([node, state, gpus, free, whole, parts]) => [
    plainName(node), STATE_WORDS[state], gpus ? `${free} of ${gpus}` : "–",
    whole ? linked([whole]) : "–", parts.length ? linked(parts) : "–",
  ]);
  return [
    facts({
      domain: rackName(rack),
      level: rack.level,
      nodes: `${count(rack.nodes, "node")}${rack.unusable ? `, ${rack.unusable} cordoned or not ready` : ""}`,
      GPUs: rack.gpus === null ? null : `${rack.free} of ${rack.gpus} free`,
    }),
    make("h3", { text: "Gangs" }),
    gangs.length ? make("ul", { class: "links" }, ...gangs.map((name) => make("li", {}, gangOrText(name))))
      : make("p", { class: "quiet", text: "no gang holds or uses a node of it" }),
    ...table("Nodes", ["node", "state", "GPUs free", "held whole by", "used by"], rows),
  ];
}

const STATE_WORDS = {
  placed: "with pods of a gang", held: "held", full: "full", partly: "partly in use", free: "free", unusable: "cordoned or not ready",
};

/** A link where it is a gang's name; what stands for a gang that may not be seen is none. */
function gangOrText(name) {
  return name.includes("/") ? gangLink(name) : make("span", { text: name });
}

function linked(names) {
  const element = make("span");
  names.forEach((name, place) => element.append(...(place ? [", "] : []), gangOrText(name)));
  return element;
}

function listed(names) {
  return names.length > 24 ? `${names.slice(0, 24).join(", ")} and ${names.length - 24} more` : names.join(", ");
}

/** Names and values; those without a value are left out. */
function facts(values) {
  const list = make("dl", { class: "facts" });
  for (const [name, value] of Object.entries(values)) {
    if (!value) continue;
    list.append(make("div", {}, make("dt", { text: name }), make("dd", typeof value === "string" ? { text: value } : {},
      ...(typeof value === "string" ? [] : [value]))));
  }
  return list;
}

function table(title, columns, rows) {
  if (!rows.length) return [];
  const head = make("tr", {}, ...columns.map((text) => make("th", { scope: "col", text })));
  const body = rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", typeof cell === "string" ? { text: cell } : {},
    ...(typeof cell === "string" ? [] : [cell])))));
  const scroll = { class: "scroll", role: "group", tabindex: "0", "aria-label": title };
  return [make("h3", { text: title }), make("div", scroll, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)))];
}

customElements.define("bay-detail", BayDetail);
