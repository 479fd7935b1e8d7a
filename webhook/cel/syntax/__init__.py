"""CEL text to a syntax tree, with macros expanded.

`grammar` parses, `build` and `literals` make the nodes of `ast`, `macros` expands calls such as `has` and
`all`. Begin with `ast`.
"""
