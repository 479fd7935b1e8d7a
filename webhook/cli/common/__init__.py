"""Options and inputs that several commands share.

- `parsers`: adds subcommands, and has the types of options
- `inputs`: reads the files of a cluster, policies and manifests; prints notes on standard error
- `standing_words`: the options of commands that inspect a live cluster, and how they read it
- `running`: evaluates the workloads of a live cluster, for `report --kubeconfig`
- `verdict_options`, `plotting`: the options of commands that print a report or draw a plot

Begin with `parsers`.
"""
