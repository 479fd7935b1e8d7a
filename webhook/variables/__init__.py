"""The CEL variables `gang`, `plan` and `cluster` as plain JSON. Pure.

`gang_and_plan` builds the first two, `cluster` the third, from `cluster_inventory` (domains, GPU nodes),
`cluster_hardware` (NUMA zones, device claims, NVLink cliques) and `gpu_shares`. `cluster` is lazy: each key
is computed when a policy first reads it. Begin with `gang_and_plan`.
"""
