"""A PodGroup made definite in one cluster: topology, levels, claims, and what other pods mean for it.

- `resolve`: the one stage from what was read to a `PlacementProblem`, and what a changed request makes of it
- `topology_request`: levels and pod classes in one topology; `level_policy`: levels that a policy gives
- `levels`, `topology_choice`: which topology and which of its levels are meant
- `device_claims`, `pod_affinity`, `topology_spread`: what claims, other pods and spread come to there
- `relaxation`: the same request with preferred levels given up; `validation`: what contradicts itself

Every contradiction is raised here as a `Refusal`, which says what would be valid, before any search.
Begin with `resolve`.
"""
