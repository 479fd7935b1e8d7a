"""Placement under rules over node labels that are not levels: pod (anti-)affinity and topology spread.

Words of this package: a *rule* is a required pod affinity, anti-affinity or spread constraint over a node
label. A label is *recurring* if one of its values occurs under several parents in the tree. A *variant* is
the request with additional node exclusions or caps. The *minimum* of a spread constraint is the final number
of pods in the emptiest domain. *Keepers* are the pod classes that must satisfy a rule, *counted* those whose
pods count in it. The *plain* tree has only the levels of the topology, the *refined* tree also the labels of
the rules. The *existing* pods of a spread constraint are those that it counts before the gang is placed.

- `placement_under_rules`: the best placement that satisfies every rule, and how many pods would fit
- `anti_affinity_over_labels`: affinity and anti-affinity, by branch and bound over level searches
- `rule_repairs`: the rules that a placement breaks, and the variants of a request that satisfy them
- `spread_over_labels`: spread constraints as caps on the pods of each domain
- `room_of_domains`: the pods of one class that fit in each domain of a label; proves that there is no place
- `spread_of_one_class`: one pod class: a placement wherever that room is enough, if the search ends early
- `spread_one_by_one`: how many pods of a class go where under several constraints, in an order of binding
- `beside_placed_classes`: the rules of a pod class beside classes of the gang that are placed already
- `bindable_placement`: whether a placement satisfies the spread constraints, also while pods are bound
- `pod_set_assignment`: which pods of a class belong to which PodSet, if a spread constraint depends on it
- `binding_order`: whether the pods of a placement can be bound one by one under their spread constraints
- `label_levels`: a tree in which labels are additional levels
- `tree_search`: the search protocol that the rules use
- `search_effort`: the work budget of all level searches for one gang

The package offers `place_by_rules`. Begin with `placement_under_rules`.
"""

from __future__ import annotations
