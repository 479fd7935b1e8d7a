"""Every key that Bayplan or its policies read or write, and keys that are similar to one of them. Pure.

- `known_keys`: the table of all keys, from which docs/reference/keys.md is generated
- `misspelt_keys`: finds keys and device resources that are probably misspelt

The names come from the modules that read them, which know nothing of the table. Begin with `known_keys`.
"""
