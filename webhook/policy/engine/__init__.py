"""Policies run over one object, each seeing what the former ones did. Pure.

- `inputs`: what the engine asks of its caller
- `policy_pass`: which policy runs where, at what cost; `targets`: the object or its pod templates
- `alike`: templates that differ in what hardly any policy looks at, each kind of which is judged once
- `exemptions`: whose objects a policy leaves alone, and until when
- `conditions`: match conditions that policies share
- `activation`: the names that an expression may read
- `mutation`: the mutating policies, and how a mutation is applied; `defaults`: what the API server
  fills in before policies see an object
- `validate`: the validating policies
- `device_selectors`: the CEL expressions that choose devices in claims, for the planner

Begin with `mutation.mutate.run_mutating`.
"""
