"""Resolves a PodGroup against one cluster: topology, levels, device claims, volumes and other pods.

- `resolve`: turns a PodGroup into a `PlacementProblem`, and derives changed problems from it
- `topology_request`: levels and pod classes in one topology
- `level_policy`: levels that a KAI topology policy sets
- `levels`, `topology_choice`: maps the request's words to level keys, and chooses the topologies to search
- `segments`: KAI's segments of a PodSet, the last of which may be short
- `device_claims`, `pod_affinity`, `topology_spread`: constraints that follow from claims and from other pods
- `volumes`: the nodes from which the pods' volumes can be used
- `tolerations`: the tolerations that the API server will add
- `priority`: warnings for priorities that the API server will refuse
- `relaxation`: the request with preferred levels relaxed step by step
- `validation`: contradictions that do not depend on the cluster

Each contradiction is raised as a `Refusal` before the search starts. The message says which request would be
valid. Begin with `resolve`.
"""
