"""Reads pods into the planner's records: the spec of a template, and bound pods.

- `pod`: the shape of a pod; `bound_pod`: a pod that uses a node
- `resized`: what a bound pod uses while its amounts change
- `pod_affinity`, `host_ports`: constraints relative to other pods
- `injected`: containers that other webhooks add to pods
- `gpu_sharing`: GPU shares, as KAI's annotations request them

Begin with `pod`.
"""
