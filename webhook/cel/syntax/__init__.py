"""CEL text to a syntax tree, with macros expanded.

`grammar` parses, `build` and `literals` make the nodes of `ast`, `macros` expands calls such as `has` and
`all`, `hints` knows what a misspelt name may have meant. Begin with `ast`.
"""
