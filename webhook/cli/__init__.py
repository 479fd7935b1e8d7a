"""The commands of `bayplan`: a file each, with `add_parser` and `run`; `demo` and `simulate` are folders.

`main` parses the command line and gives the exit status; `parsers`, `inputs` and `standing_words` hold what
commands share.
Begin with `main`, then `mutate`: the shortest way from a file to a decision.
"""
