"""The commands of `bayplan`. Each command is a module with `add_parser` and `run`.

- `decisions`: commands that evaluate manifests and policies in files
- `clusters`: commands that inspect or change a cluster
- `installation`: commands that run or check Bayplan itself
- `demo`, `simulate`: commands of their own
- `completion`, `kubectl_completion`: shell completion of all commands, alone and as a kubectl plugin
- `common`: options and inputs that several commands share
- `cluster_files`: reads a cluster from files

`main` has the table of commands, parses the command line and returns the exit status. Begin with `main`, then
`decisions.mutate`, which shows how a command gets from a file to a decision.
"""
