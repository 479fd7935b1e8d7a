"""Resolves a PodGroup against one cluster: topology, levels, device claims, volumes and other pods.

Words of this package:

- *level*: a node-label key of a topology, as in requests, or its index in the topology
- *pod class*: a set of pods that the search treats as equal
- *clique*: a multi-node NVLink domain (label `nvidia.com/gpu.clique`)
- *channel*: the device that a pod claims in order to use the clique of its ComputeDomain
- *slice*: a group of pods of a PodSet that stay in one domain; *segment*: a slice by KAI's rules (`segments`)
- *shape* of a pod: everything in its spec that affects where it fits (`PodShape`)
- *exclusion*: keeps pods off nodes by the values of a label (`NodeExclusion`). It is *passing* if it depends
  on the current state, for example on bound pods, and so does not apply in the empty cluster

The modules:

- `resolve`: turns a PodGroup into a `PlacementProblem`, and derives changed problems from it
- `topology_request`: levels and pod classes in one topology
- `level_policy`: levels that a KAI topology policy sets
- `levels`, `topology_choice`: maps the names of levels to label keys, and chooses the topologies to search
- `segments`: KAI's segments of a PodSet, the last of which may be short
- `device_claims`, `affinity`, `topology_spread`: constraints that follow from claims and from other pods
- `shared_claims`: the nodes that have the devices of claims that several pods share
- `volumes`: the nodes from which the pods' volumes can be used
- `created_pods`: what the API server will add to the pods, by their RuntimeClass for example
- `priority`: warnings for priorities that the API server will refuse
- `relaxation`: the request with preferred levels relaxed step by step
- `validation`: contradictions that do not depend on the cluster

Each contradiction is raised as a `Refusal` before the search starts. Its message states which request would
be valid. Begin with `resolve`.
"""
