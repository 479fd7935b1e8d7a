"""Counts of free, used and held GPUs, which commands and reports show.

- `domains`: the counts of each domain of a topology
- `namespaces`: the counts of each node and each namespace, to which the limits on gangs apply

Begin with `domains`.
"""
