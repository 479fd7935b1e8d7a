"""Pods read into the planner's records: the spec of a template, and pods that are bound to a node.

- `pod`: the shape of a pod; `bound_pod`: a pod that uses a node
- `pod_affinity`, `host_ports`: what keeps a pod away from other pods, or beside them
- `gpu_sharing`: parts of GPUs, as KAI's annotations request them

Begin with `pod`.
"""
