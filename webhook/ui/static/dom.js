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
    if (name === "text") element.textContent = printable(value);
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
