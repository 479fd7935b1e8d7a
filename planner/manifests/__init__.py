"""Kubernetes objects read into the planner's records, and Reservations written as objects.

- `cluster`: a whole cluster: nodes, pods, topologies, slices, limits, settings; `node`: one node
- `pods`: pod templates and bound pods; `numa`, `devices`: NUMA zones and device claims
- `volumes`: PersistentVolumes, their claims and classes; `growth`: node pools that may grow
- `topologies`: Topology objects, and topologies inferred from labels
- `schedulers`: which scheduling systems are there, with their queues and topologies
- `settings`: schedulers' ConfigMaps, LimitRanges, ResourceQuotas, PriorityClasses
- `reservation`: a Reservation, read and written; `nccl_job`: a job that measures the fabric of some nodes
- `node_checks`: what is wrong with nodes: labels, GPU feature discovery, the kubelet's settings
- `requirements`: label selectors and node selector terms
- `fields`: typed fields of untyped objects; invalid input is an `InputError` that names the field

Begin with `cluster`.
"""
