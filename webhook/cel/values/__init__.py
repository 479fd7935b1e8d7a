"""What CEL knows beyond JSON: types, values, equality, schemas, cost budgets, errors.

`values` has the values that JSON has no type for, `temporal` those of time, `regex` patterns, `types` the
static types, `equality` what is equal or less, `schema` the built-in Kubernetes kinds, `budget` the cost
limits, `errors.CelError` the one error, `stand_in` values that nobody may look at. Begin with `values`.
"""
