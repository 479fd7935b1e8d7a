// Elements made of text, never of markup: what a name holds is shown as it is.

const STEERING = /[^\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const LONGEST = 120; // characters of a name in a list; its own page shows all of it

/** The text without control characters and marks that turn its direction, as webhook/report/printable.py has it. */
export function printable(text) {
  return String(text).replace(STEERING, "\ufffd");
}

/** A name in a list: cut where it would fill the screen. */
export function short(text) {
  const shown = printable(text);
  return shown.length > LONGEST ? `${shown.slice(0, LONGEST - 1)}…` : shown;
}

/** An element with attributes (`text` is its text, `class` its class) and children. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.append(...breakable(printable(value)));
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Set a text only where it differs: the browser lays out nothing anew for the others. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Make the children of a parent those of these keys in their order; `build` makes a new one, `update` fills it. */
export function keyed(parent, elements, keys, build, update) {
  const wanted = new Set(keys);
  for (const [key, element] of elements) {
    if (!wanted.has(key)) {
      element.remove();
      elements.delete(key);
    }
  }
  let next = parent.firstChild;
  for (const key of keys) {
    let element = elements.get(key);
    if (!element) elements.set(key, (element = build(key)));
    if (element === next) next = next.nextSibling;
    else parent.insertBefore(element, next);
    update?.(key, element);
  }
}

/** The address of a gang or a rack on this page. */
export function address(kind, key) {
  return `#${kind}=${encodeURIComponent(key)}`;
}

export function gangLink(name, label = short(name)) {
  return make("a", { href: address("gang", name), class: "name", text: label, title: label.endsWith("…") ? printable(name) : null });
}

/** A name in a list that leads nowhere; all of it is told where it is cut. */
export function plainName(name) {
  const label = short(name);
  return make("span", { class: "name", text: label, title: label.endsWith("…") ? printable(name) : null });
}

const SLASHES = 64; // of a text with more, which nobody means to be read, lines break anywhere

/** A text whose lines break behind slashes, before they do inside a word. */
function breakable(text) {
  const parts = text.split(/(?<=\/)/);
  if (parts.length < 2 || parts.length > SLASHES) return [text];
  return parts.flatMap((part, place) => (place ? [make("wbr"), part] : [part]));
}

const LONG = 400; // characters of a sentence; the rest is there, folded

/** A sentence; the rest of a very long one is under it, and a click unfolds it. */
export function sentence(words, look = "") {
  const shown = printable(words ?? "");
  const style = look ? `words ${look}` : "words";
  if (shown.length <= LONG) return make("span", { class: style, text: shown });
  const space = shown.lastIndexOf(" ", LONG);
  const cut = space > 0 ? space : LONG;
  return make("details", { class: style }, make("summary", { text: shown.slice(0, cut) }), make("span", { text: shown.slice(cut).trimStart() }));
}

/** A moment: the time of day, with the date where that is another. `seconds` since the epoch, or RFC 3339. */
export function moment(when) {
  const date = typeof when === "number" ? new Date(when * 1000) : new Date(when);
  if (Number.isNaN(date.getTime())) return make("span", { text: "" });
  const time = date.toLocaleTimeString([], { hour12: false });
  const today = date.toDateString() === new Date().toDateString();
  return make("time", { datetime: date.toISOString(), text: today ? time : `${date.toLocaleDateString("sv")} ${time}` });
}

/** How long ago, as kubectl shows it. */
export function age(when) {
  const seconds = Math.max(0, Math.floor((Date.now() - new Date(when).getTime()) / 1000));
  if (!when || Number.isNaN(seconds)) return "";
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 10800) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

export function count(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}
