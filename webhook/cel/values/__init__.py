"""CEL's values and types, equality, schemas, cost budgets, errors.

`values` are the values that JSON has no type for, `temporal` timestamps and durations, `regex` patterns,
`types` static types, `equality` the comparison of values, `schema` the schemas of built-in Kubernetes kinds,
`budget` cost limits, `errors` the errors of the engine, `stand_in` values that must not be read. Begin with
`values`.
"""
