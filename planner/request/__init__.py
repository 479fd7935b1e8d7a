"""A PodGroup resolved in one cluster: its topology, its levels, its device claims, its neighbours.

- `resolve`: the one stage from the PodGroup to a `PlacementProblem`, and changed problems
- `topology_request`: levels and pod classes in one topology; `level_policy`: levels that a policy sets
- `levels`, `topology_choice`: which topology, and which of its levels, a request means;
  `segments`: KAI's parts of a PodSet, of which the last may be short
- `device_claims`, `pod_affinity`, `topology_spread`: the constraints that claims and other pods add
- `volumes`: the nodes that they can be used from; `tolerations`: those that the API server will add;
  `priority`: what pods state that counts for nothing
- `relaxation`: the same request with preferred levels relaxed; `validation`: contradictory requests

Every contradiction is raised here as a `Refusal`, before any search. Its message says what would be valid.
Begin with `resolve`.
"""
