"""What commands share: options, reading of files, how a cluster is looked at.

`parsers` makes subcommands and types of options; `inputs` are the files of a cluster, policies and
manifests, with notes to the person at the terminal; `standing_words` are the options of commands that look
at a cluster; `running` reads what runs there as if it were files; `verdict_options` and `plotting` are the
options of commands that print findings and that draw curves. Begin with `parsers`.
"""
