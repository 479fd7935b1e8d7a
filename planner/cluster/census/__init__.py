"""What of a cluster's devices is free, used and held: counted for people.

- `domains`: by domain of a topology
- `namespaces`: by node and by namespace, as limits count it

Begin with `domains`.
"""
