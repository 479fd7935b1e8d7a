"""All annotation and label keys that are read or written, and misspelt keys. Pure.

- `topology_keys`: topology requests in the annotations and labels of every dialect
- `annotation_keys`: the names of Bayplan's own annotations
- `known_keys`: the table of all keys, from which docs/reference/keys.md is generated
- `misspelt_keys`: finds keys and device resources that are probably misspelt

A *dialect* is the set of keys with which one system (KAI, Kueue, Run:ai, nod-ai) states a topology request.
A *segment* is KAI's word for a slice: a group of pods that stays within one domain of a finer level.

Begin with `topology_keys`.
"""
