"""Makes the CEL variables `gang`, `plan` and `cluster`, as plain JSON values. Pure.

Each has a module of its name. `cluster` also uses `cluster_inventory` (domains, GPU nodes),
`cluster_hardware` (NUMA zones, device claims, NVLink cliques) and `gpu_shares`; each of its keys is computed
when a policy first reads it. Begin with `gang`.
"""
