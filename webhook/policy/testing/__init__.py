"""Reads, runs and compares the cases in `tests.yaml` beside policies; for `bayplan test`.

`cases`: a case, and how an outcome is compared with it; `runner`: finds and runs cases; `coverage`: which
expressions were reached; `junit`: writes the results. Begin with `cases`.
"""
