"""Policies run over one object, each seeing what the former ones did. Pure.

- `model`: a policy once it is read; `match`, `selectors`: which requests it is for
- `inputs`: what the engine asks of its caller
- `policy_pass`: which policy runs where, at what cost; `targets`: the object or its pod templates
- `parameters`: the texts of the parameters; `conditions`: match conditions that policies share
- `activation`: the names that an expression may read
- `mutate`: the mutating policies; `apply_merge`, `defaults`, `schema_check`: how a mutation is applied
- `validate`: the validating policies

Begin with `mutate.run_mutating`.
"""
