// What the server told so far, section by section, and what the viewer has chosen.

const SECTIONS = ["page", "health", "racks", "gangs", "decisions", "policies"];

export class Picture {
  sections = Object.fromEntries(SECTIONS.map((section) => [section, new Map()]));
  search = "";
  selected = { kind: "", key: "" };

  /** Take up an event; gives the keys that changed, by section. `whole`: what it does not name is gone. */
  apply(event, whole) {
    const changed = Object.fromEntries(SECTIONS.map((section) => [section, new Set()]));
    for (const section of SECTIONS) {
      const entries = this.sections[section];
      const told = event[section] ?? {};
      if (whole) {
        for (const key of entries.keys()) {
          if (!Object.hasOwn(told, key)) {
            entries.delete(key);
            changed[section].add(key);
          }
        }
      }
      for (const [key, entry] of Object.entries(told)) {
        if (entry === null) entries.delete(key);
        else entries.set(key, entry);
        changed[section].add(key);
      }
    }
    return changed;
  }

  get page() {
    return this.sections.page.get("") ?? { source: "", revisions: [] };
  }

  /** The racks in the order of the map. */
  racks() {
    return [...this.sections.racks].sort(([, a], [, b]) => compare(a.topology, b.topology) || a.place - b.place);
  }

  /** Those that wait, in the order of the queue. */
  queue() {
    return [...this.sections.gangs].filter(([, gang]) => gang.position).sort(([, a], [, b]) => a.position - b.position);
  }

  /** The gangs in which the search word is, those that lost their place first, then those that wait, by name. */
  gangs() {
    const order = { stuck: 0, waiting: 1, admitted: 2, starting: 3, running: 4 };
    return [...this.sections.gangs]
      .filter(([name, gang]) => this.matches(name, gang.state, gang.place ?? ""))
      .sort(([a, one], [b, other]) => order[one.state] - order[other.state] || compare(a, b));
  }

  /** The decisions in which the search word is, the newest first. */
  decisions() {
    return [...this.sections.decisions]
      .filter(([, told]) => this.matches(told.name, told.kind, told.policy, told.message))
      .sort(([a, one], [b, other]) => other.time - one.time || compare(a, b));
  }

  matches(...texts) {
    return !this.search || texts.some((text) => text.toLowerCase().includes(this.search));
  }
}

export function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}
