"""Rules over node labels that are no level of the topology: anti-affinity, affinity, spread constraints.

It offers `place_by_rules`. Begin with `placement_under_rules`.

- `placement_under_rules`: the best placement that keeps every rule; how many pods would
- `anti_affinity_over_labels`: pods apart or together, by branch and bound over level searches
- `rule_repairs`: the rules that a placement breaks, and the variants of a request that keep them
- `spread_over_labels`: spread constraints as caps on what domains may hold
- `spread_of_one_class`: one class, one constraint: exactly whether there is a place
- `label_levels`: a tree whose levels are labels too
- `tree_search`: what the rules need of the search that they are kept around
- `search_effort`: how many level searches one gang may have
"""

from __future__ import annotations
