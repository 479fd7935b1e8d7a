"""The CEL variables `gang`, `plan` and `cluster` as plain JSON. Pure.

Each has a module of its name. `cluster` is computed from `cluster_inventory` (domains, GPU nodes),
`cluster_hardware` (NUMA zones, device claims, NVLink cliques) and `gpu_shares`. `cluster` is lazy: each key
is computed when a policy first reads it. Begin with `gang`.
"""
