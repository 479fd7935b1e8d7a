"""Mutating policies: each is applied to the object as the policies before it left it. Pure.

- `mutate`: runs the mutating policies over one object
- `apply_merge`: merges an apply configuration as server-side apply does
- `schema_check`: which kind a policy is about; rejects a mutation that the kind's schema does not allow

Begin with `mutate.run_mutating`.
"""
