"""The cases of `tests.yaml` beside policies: read, run, compared; for `bayplan test`.

`cases` is what a case says and how an outcome is compared with it, `runner` finds and runs them, `coverage`
tells which expressions they reached, `junit` writes the results. Begin with `cases`.
"""
