"""The commands of `bayplan`, a file each with `add_parser` and `run`, in rooms by what they are asked of.

- `decisions`: on files of manifests and policies; `clusters`: on a cluster; `installation`: on Bayplan itself
- `demo`: a folder; `simulate`, `completion` and `kubectl_completion` (how shells and kubectl complete all of
  these): a file each
- `common`: options and readings that commands share; `cluster_files`: a cluster that stands in files

`main` has the table of commands, parses the command line and gives the exit status. Begin with `main`, then
`decisions.mutate`: the shortest way from a file to a decision.
"""
