"""What a policy is once it is read, and what administrators set for policies: frozen records. Pure.

- `policy`: policies, their bindings and exemptions, and the set of all
- `match`, `selectors`: which requests a policy is for
- `parameters`: the texts of the parameters; `packs`: those of one scheduling system

Begin with `policy`.
"""
