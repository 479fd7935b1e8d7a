"""Placement under rules over node labels that are not levels: pod (anti-)affinity and topology spread.

- `placement_under_rules`: the best placement that satisfies every rule, and how many pods would fit
- `anti_affinity_over_labels`: affinity and anti-affinity, by branch and bound over level searches
- `rule_repairs`: the rules that a placement breaks, and the variants of a request that satisfy them
- `spread_over_labels`: spread constraints as caps on the pods of each domain
- `spread_of_one_class`: one pod class with one constraint: decides exactly whether there is a placement
- `pod_set_assignment`: which pods of a class belong to which PodSet, where a spread constraint depends on it
- `label_levels`: a tree in which labels are levels too
- `tree_search`: the search protocol that the rules use
- `search_effort`: the work budget of all level searches for one gang

The package offers `place_by_rules`. Begin with `placement_under_rules`.
"""

from __future__ import annotations
