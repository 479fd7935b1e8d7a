"""The commands of `bayplan`.

Each command is a module with `add_parser`, which adds its options, and `run`, which returns the exit status.

- `decisions`: commands that evaluate manifests and policies in files
- `clusters`: commands that inspect or change a cluster
- `installation`: commands that run or check Bayplan itself
- `demo`: runs the webhook on this machine with examples; `simulate`: simulates a cluster
- `completion`, `kubectl_completion`: shell completion of all commands, alone and as a kubectl plugin
- `common`: options and inputs that several commands share
- `cluster_files`: reads a cluster from files

*Cluster files* (`-c`) describe a cluster, and *manifests* (`-f`) are objects to apply to it. In the code,
`environment` is the `Environment` of a decision: namespaces, parameters and settings. The *standing* of a
cluster is the state of its gangs: which have a place, and which wait for what.

`main` has the table of commands, parses the command line and returns the exit status. Begin with `main`, then
`decisions.mutate`, which shows how a command gets from a file to a decision.
"""
