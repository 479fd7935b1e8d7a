"""Compiles a syntax tree into Python closures, with all checks that are possible before evaluation.

`compiler` walks the tree; `operators`, `select`, `aggregates`, `comprehensions` and `mutations` create the
closures of their nodes, `functions` chooses overloads by type, `literals` checks constant patterns and times,
`declarations` is the environment of an expression. Begin with `code`, the result of compiling a node.

- *Run*: the closure of a node. Its only argument is the frame; it returns the node's value.
- *Frame*: a list of the bindings, the meter, and the *slots*, one for each variable of a macro.
- *Overload*: an implementation of a function for some argument types.
- *Host*: the program that uses the CEL engine, and may register functions of its own.
"""
