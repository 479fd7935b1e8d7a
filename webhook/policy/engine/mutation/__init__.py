"""Mutating policies: each is applied to the result of the previous ones. Pure.

- `mutate`: runs the mutating policies over one object
- `apply_mutation`: evaluates a mutation and applies its value to an object
- `apply_merge`: merges an apply configuration as server-side apply does
- `changes`: transfers a policy's changes to the object without defaults
- `schema_check`: finds the kind that a policy matches; rejects a mutation that the kind's schema does not
  allow

Begin with `mutate.run_mutating`.
"""
