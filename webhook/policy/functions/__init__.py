"""Functions that policies call where CEL has no short expression: JSON in, JSON out, one file per subject.
Pure.

`table.FUNCTIONS` lists all of them by name; each is an ordinary Python function that raises ValueError with a
short message. Begin with `table`.
"""
