"""Topology requests in the keys of every dialect, and the names of Bayplan's own keys. Pure.

- `topology_keys`: topology requests in the annotations and labels of every dialect
- `annotation_keys`: the names of Bayplan's own annotations

A *dialect* is the set of keys with which one system (KAI, Kueue, Run:ai, nod-ai) states a topology request.
A *segment* is KAI's word for a slice: a group of pods that stays within one domain of a finer level.

Begin with `topology_keys`.
"""
