"""The CEL variables `gang`, `plan` and `cluster` as plain JSON. Pure.

`gang_and_plan` makes the first two, `cluster` the third, from `cluster_inventory` (domains, GPU nodes),
`cluster_hardware` (NUMA zones, device claims, NVLink cliques) and `gpu_shares`. `cluster` is lazy: each key
is worked out when a policy first reads it. Begin with `gang_and_plan`.
"""
