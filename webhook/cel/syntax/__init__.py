"""Parses CEL text into a syntax tree, with macros expanded.

`grammar` parses, `build` and `literals` create the nodes of `ast`, `macros` expands calls such as `has` and
`all`, `hints` suggests the correct spelling of a misspelt name, `unlike_elements` names literals that only
the API server refuses. Begin with `ast`.
"""
