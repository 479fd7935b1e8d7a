// The fabric: a tile for each rack with a square for each node, under the headings of zones and blocks.

import { address, count, make, printable, setText, short } from "./dom.js";

const WORDS = {
  placed: "with pods of a gang",
  held: "held for a gang",
  full: "full",
  partly: "partly in use",
  free: "free",
  unusable: "cordoned or not ready",
};
const SIGNS = { partly: "+", unusable: "–" };
const TOLD = 4; // gangs that a rack's sentence names; its own page names all
const NEAR = "600px"; // squares are drawn for tiles that are about to be seen

class BayMap extends HTMLElement {
  #elements = new Map();
  #drawn = new Set();
  #order = "";
  #marked = { gang: "", racks: [] };

  connectedCallback() {
    this.#watch = new IntersectionObserver((seen) => {
      for (const { target, isIntersecting } of seen) {
        if (isIntersecting) this.#draw(target);
      }
    }, { rootMargin: NEAR });
  }

  #watch;
  #picture;

  render(picture, changed) {
    this.#picture = picture;
    const racks = picture.sections.racks;
    const keys = picture.racks().map(([key]) => key);
    const order = keys.join("\n");
    if (order !== this.#order) {
      this.#order = order;
      this.#arrange(keys, racks);
      for (const key of keys) this.#fill(key, racks.get(key));
    } else {
      for (const key of changed.racks) this.#fill(key, racks.get(key));
    }
    this.#mark(picture);
    this.#legend();
  }

  /** Dim what the search word is not in; without one all is shown. */
  find(picture) {
    for (const [key, rack] of picture.sections.racks) {
      const element = this.#elements.get(key);
      if (rack.cells.length) element.classList.toggle("dim", !picture.matches(...texts(rack)));
    }
  }

  #arrange(keys, racks) {
    let list = null;
    const parents = [];
    for (const key of keys) {
      const rack = racks.get(key);
      if (!this.#elements.has(key)) this.#elements.set(key, rack.cells.length ? tile(key) : heading(rack));
      const element = this.#elements.get(key);
      if (!rack.cells.length) {
        parents.push(element);
        list = null;
      } else {
        if (!list) parents.push((list = make("ul", { class: "racks" })));
        list.append(element);
      }
    }
    for (const [key, element] of this.#elements) {
      if (!racks.has(key)) {
        element.remove();
        this.#elements.delete(key);
        this.#drawn.delete(element);
      }
    }
    this.replaceChildren(...parents, this.#legendList);
    for (const key of keys) if (racks.get(key).cells.length) this.#watch.observe(this.#elements.get(key));
  }

  #fill(key, rack) {
    const element = this.#elements.get(key);
    if (!rack || !element) return;
    const free = rack.gpus === null ? "" : rack.gpus ? `${rack.free} of ${rack.gpus} GPUs free` : "no whole GPUs";
    if (!rack.cells.length) {
      setText(element.querySelector(".free"), `${count(rack.nodes, "node")}, ${free}`);
      return;
    }
    element.rack = rack;
    const [title, numbers, squares, sentence] = element.firstChild.children;
    setText(title, short(rack.title));
    setText(numbers, rack.gpus === null ? "" : `${rack.free}/${rack.gpus}`);
    setText(sentence, printable(`: ${free}${free ? "; " : ""}${words(rack)}`));
    element.firstChild.title = printable(rack.title).slice(0, 1000);
    squares.style.setProperty("--rows", Math.ceil(rack.cells.length / 8));
    if (this.#drawn.has(element)) this.#squares(element);
  }

  #draw(element) {
    this.#watch.unobserve(element);
    if (this.#drawn.has(element) || !element.rack) return;
    this.#drawn.add(element);
    this.#squares(element);
  }

  /** The squares of a tile: those that differ are touched, no others. */
  #squares(element) {
    const holder = element.firstChild.children[2];
    const cells = element.rack.cells;
    while (holder.children.length > cells.length) holder.lastChild.remove();
    while (holder.children.length < cells.length) holder.append(document.createElement("i"));
    cells.forEach((cell, place) => {
      const square = holder.children[place];
      const [, state, , , , , gang] = cell;
      const letter = this.#picture.sections.gangs.get(gang)?.letter ?? "";
      const sign = letter ? (state === "placed" ? letter : letter.toLowerCase()) : (SIGNS[state] ?? "");
      const mine = this.#marked.gang && isIn(this.#marked.gang, cell);
      const look = mine ? `${state} mine` : state;
      if (square.className !== look) square.className = look;
      setText(square, sign);
    });
  }

  /** Mark the racks and squares of the chosen gang, or the chosen rack; those of the former are let go. */
  #mark(picture) {
    const { kind, key } = picture.selected;
    const gang = kind === "gang" ? picture.sections.gangs.get(key) : null;
    const racks = kind === "rack" ? [key] : (gang?.racks ?? []);
    const before = this.#marked.racks;
    this.#marked = { gang: gang ? key : "", racks };
    for (const rack of new Set([...before, ...racks])) {
      const element = this.#elements.get(rack);
      if (!element?.rack) continue;
      element.classList.toggle("chosen", racks.includes(rack));
      if (this.#drawn.has(element)) this.#squares(element);
    }
  }

  /** Bring the first rack of what is chosen into view. */
  reveal() {
    this.#elements.get(this.#marked.racks.find((key) => this.#elements.get(key)?.rack))?.scrollIntoView({ block: "nearest" });
  }

  #legendList = make("ul", { class: "legend", "aria-hidden": "true" });

  #legend() {
    if (this.#legendList.children.length) return;
    const signs = { placed: "A", held: "a", ...SIGNS };
    for (const [state, text] of Object.entries(WORDS)) {
      const square = make("span", { class: "nodes" }, make("i", { class: state, text: signs[state] ?? "" }));
      this.#legendList.append(make("li", {}, square, make("span", { text })));
    }
  }
}

function heading(rack) {
  const level = rack.depth < 0 ? "h3" : "h4";
  return make("div", { class: `level depth-${Math.min(rack.depth, 3)}` },
    make(level, { class: "name", text: short(rack.title) }), make("span", { class: "free quiet" }));
}

function tile(key) {
  const link = make("a", { href: address("rack", key), class: "rack-tile" },
    make("span", { class: "title" }), make("span", { class: "free" }),
    make("span", { class: "nodes", "aria-hidden": "true" }), make("span", { class: "said" }));
  return make("li", {}, link);
}

function isIn(gang, [, , , , whole, parts, shown]) {
  return whole === gang || shown === gang || parts.includes(gang);
}

/** The squares in words: how many nodes each gang has, and how many are in each other state. */
function words(rack) {
  const counts = new Map();
  for (const [, state, , , , , gang] of rack.cells) {
    const what = gang ? `${state === "placed" ? "with pods of" : "held for"} ${short(gang)}` : WORDS[state];
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  const told = [...counts].map(([what, number]) => `${number} ${what}`);
  return told.length > TOLD ? `${told.slice(0, TOLD).join(", ")} and ${told.length - TOLD} more` : told.join(", ");
}

function* texts(rack) {
  yield rack.title;
  for (const [node, , , , whole, parts] of rack.cells) {
    yield node;
    yield whole;
    yield* parts;
  }
}

customElements.define("bay-map", BayMap);
