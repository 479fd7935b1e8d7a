"""Requests, answers and reservations as frozen records, in Kubernetes' terms.

- `podgroup`: the request for a gang; `pod`: the shape of one pod; `claim_spec`: a device claim;
  `resolved`: the request with everything that depends on the cluster filled in
- `answer`: the answer; `holding`: what an admitted gang will hold; `reservation`: what a gang holds
- `node`, `topology`, `labels`, `settings`: what the API server and the administrator define
- `schedulers`: which scheduling systems a cluster has
- `resources`: names of GPU resources and labels; `priority`: the priority of pods by PriorityClass
- `volumes`: persistent volumes; `host_ports`: host ports as anti-affinity; `growth`: autoscaled node pools
- `pod_class`: equal pods as one class, which `planner.request` makes and `planner.node` packs
- `quantity`, `natural_order`, `names`: quantities, sorting, the parts of names
- `errors`, `words`: invalid input, phrases of messages
- `effort`: the limit of a search in steps, and that of a decision in time
- `cached_property`: attributes of a record that are computed once

Words: a *gang* is a PodGroup whose pods are placed all together or not at all. A *level* is a node-label key
of a Topology, a *domain* the nodes with the same values for all levels from the coarsest down to one level
(one rack). A gang *holds* nodes by a reservation, some of its domains *whole*: no other gang may use these. A
*book* is the list of all reservations. A *resolved* request is combined with the state of one cluster. The
*shape* of a pod (`PodShape`) is all that it requests of a node and requires of it.

Imports nothing of the planner. Begin with `podgroup`, then `answer`.
"""
