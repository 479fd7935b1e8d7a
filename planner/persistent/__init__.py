"""Immutable collections with cheap changes: a changed one shares nearly everything with the former one.

- `persistent_map`: a mapping
- `sequence_delta`: the changes of a long sequence

Begin with `persistent_map`.
"""
