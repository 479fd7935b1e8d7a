"""Counts for people: which GPUs of a cluster are free, used and held.

- `domains`: by domain of a topology
- `namespaces`: by node and by namespace, as the limits on gangs count them

Begin with `domains`.
"""
