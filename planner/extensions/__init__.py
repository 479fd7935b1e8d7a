"""Requests beyond constraints, each a loop over problems: equal parts, elastic gangs, leaf-spine rules.

- `place`: which extension serves a gang; all others are left to the search alone
- `equal_parts`: the same number of pods in each domain; `elastic`: as many pods as have a place

Begin with `place`.
"""
