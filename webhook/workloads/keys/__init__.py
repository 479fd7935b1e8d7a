"""All annotation and label keys that are read or written, and misspelt keys. Pure.

- `topology_keys`: topology requests in the annotations and labels of every dialect
- `annotation_keys`: the names of Bayplan's own annotations
- `known_keys`: the table of all keys, from which docs/reference/keys.md is generated
- `misspelt_keys`: which known key or device resource was meant

Begin with `topology_keys`.
"""
