"""Policies after reading, and the parameters that administrators set: frozen records. Pure.

- `policy`: policies, their bindings and exemptions, and the set of all
- `match`, `selectors`: which requests a policy applies to
- `parameters`: the texts of the parameters; `packs`: presets for one scheduling system

Begin with `policy`.
"""
