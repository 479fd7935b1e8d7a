"""A syntax tree compiled into Python closures, every check made that needs no object.

`compiler` walks the tree; `operators`, `select`, `aggregates`, `comprehensions` and `mutations` compile their
nodes, `functions` chooses overloads by type, `literals` reads constant patterns and times, `declarations`
says what an expression may name. Begin with `code`, what a node compiles to.
"""
