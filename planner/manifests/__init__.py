"""Reads Kubernetes objects into the planner's records, and writes Reservations as objects.

- `cluster`: a whole cluster: nodes, pods, topologies, slices, limits, settings; `node`: one node
- `records`: the kinds of which each object is one record of the cluster, read by itself
- `pods`: pod templates and bound pods; `numa`, `devices`: NUMA zones and device claims
- `volumes`: PersistentVolumes, their claims and classes; `growth`: node pools that may grow
- `topologies`: Topology objects, and topologies inferred from labels
- `schedulers`: which scheduling systems are installed, with their queues and topologies
- `settings`: schedulers' ConfigMaps, LimitRanges, ResourceQuotas, PriorityClasses, RuntimeClasses
- `reservation`: reads and writes a Reservation; `nccl_job`: a job that measures the fabric between nodes
- `node_checks`: faults of nodes: labels, GPU feature discovery, kubelet settings
- `requirements`: label selectors and node selector terms
- `lists`: the items of List objects
- `fields`: typed fields of untyped objects; invalid input is an `InputError` that names the field

A parameter `where` is the location of an object or field in the input, for error messages. The *shape* of a
pod (`PodShape`) is all of its spec that affects where it fits. The *reservable level* of a Topology is the
level whose domains a gang holds whole if its placement spans several of them. A *clique* is a multi-node
NVLink domain (label `nvidia.com/gpu.clique`).

Begin with `cluster`.
"""
