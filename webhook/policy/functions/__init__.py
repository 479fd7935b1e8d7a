"""CEL functions for policies, for questions that CEL cannot answer in a short expression: JSON in, JSON out,
one file per subject. Pure.

`table.FUNCTIONS` lists all of them by name. Each is a Python function that may raise ValueError with a short
message, which becomes the error of the expression. The docstring of a function begins with an example of its
call; docs/cel.md is generated from it. Begin with `table`.
"""
