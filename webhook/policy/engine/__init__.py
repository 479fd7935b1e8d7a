"""Runs policies over one object; each policy sees the changes of the previous ones. Pure.

- `inputs`: the interface through which the caller provides parameters, variables and the authorizer
- `policy_pass`: which policy runs where, and at what cost; `targets`: the object or its pod templates;
  `object_cache`: what all policies of a pass see of these, computed once
- `forms`: what templates and objects that differ only in rarely read values have in common; `sharing`: runs a
  policy once for all that are equal in all that it reads
- `parameters`: the parameter objects to which a binding refers
- `exemptions`: objects to which a policy does not apply, and until when
- `conditions`: match conditions that policies share
- `activation`: the names that an expression may read
- `mutation`: the mutating policies, and how a mutation is applied
- `defaults`: the API server's defaults, set before policies see an object
- `validate`: the validating policies; `findings`: their result
- `failures`: policies that could not be evaluated; `skipped`: policies that are left out
- `device_selectors`: the CEL expressions that select devices in claims, for the planner

A *target* is what one policy is run on: the object, or a pod template in it. A *run* is one policy on one
target, with one binding and one parameter object. A *pass* is all mutating or all validating policies on one
object.

Begin with `mutation.mutate.run_mutating`.
"""
