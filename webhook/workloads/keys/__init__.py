"""Every annotation and label key that is read or written, and keys that are nearly one of them. Pure.

- `known_keys`: the table of them all, from which docs/reference/keys.md is written
- `misspelt_keys`: which known key, or device resource, was meant

Begin with `known_keys`.
"""
