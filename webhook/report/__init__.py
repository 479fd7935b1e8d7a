"""Reports what each policy and the plan would do to each object, in several formats.

- `model`: the `Report` and its results, from which every format is written
- `collect`: makes the results from decisions
- `formats`: the table of formats; each is a module with a function `write`
- `offender`, `lines`: find the field and the line that a result is about
- `in_cluster`: merges decisions into the Report of a namespace in a cluster
- `terminal`, `documents`: print tables, JSON and YAML for every command

Begin with `model`.
"""
