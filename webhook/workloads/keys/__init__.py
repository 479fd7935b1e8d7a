"""Every annotation and label key that is read or written, and keys that are nearly one of them. Pure.

- `topology_keys`: topology requests in the annotations and labels of every dialect
- `annotation_keys`: the names of Bayplan's own annotations
- `known_keys`: the table of them all, from which docs/reference/keys.md is written
- `misspelt_keys`: which known key, or device resource, was meant

Begin with `topology_keys`.
"""
