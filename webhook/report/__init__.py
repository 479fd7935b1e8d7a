"""Reports what each policy and the plan would do to each object, in several formats.

A *result* is what one rule of a policy, or the plan of one gang, says about an object. Results that are
errors, failures or warnings are *findings*. The *fate* of an object is what would happen to it: refused,
queued, changed or unchanged. A *course* is the use of a cluster over time, simulated, recorded or replayed,
and its *figures* sum it up: mean use, waiting times and moves. A *map* draws the domains of a topology (a
*fabric*) with their nodes and gangs; a *rack* is a domain of the finest level above the hosts.

- `model`: the `Report` and its results, from which every format is written
- `collect`: makes the results from decisions
- `not_read`: makes results for unsupported kinds, and for namespaces without a Namespace object
- `offender`, `lines`: find the field and the line that a result is about
- `formats`: the table of formats, each a module with a function `write`: `table`, `json`, `openreports`,
  `junit`, `sarif`, `markdown` and `html`
- `fabric_map`: the map of a topology; `fabric_text` draws it as text
- `views`: the diff of an object, and the racks that its gangs use, for the HTML page
- `moves`, `verification`: print the results of `bayplan defrag` and `bayplan verify`
- `figures`: prints and draws figures of courses
- `in_cluster`: merges decisions into the stored resource `Report` (openreports.io) of a namespace, which is
  not the `Report` of `model`
- `terminal`, `documents`: print tables, JSON and YAML for every command
- `printable`: replaces characters that are unsafe in a terminal

Begin with `model`.
"""
