"""Finds the best placement of a resolved request in one topology tree, or a valid but unproved one.

This package offers `place`, which searches for a problem; a table there says which search serves which
request. Begin with docs/how-a-plan-is-found.md, then `place`. The modules are in the order of their use:

- `place`: the best placement of a problem, in each topology that it may mean; `outcome`: the result of that
- `space`: the search space: a tree with the capacity that one gang may use, now or in the empty cluster
- `level_search`: level by level, finest first: the first level with a domain for the whole gang
- `domain_ranking`: the best domain of a level, and the one that comes closest
- `packing`: the cheapest way to place all pods inside one domain
- `objective`: what a placement costs, as one whole number
- `eligibility_map`: which nodes the pods may use by their labels; `domain_caps`: the most pods that a domain
  may hold
- `binding_order`: whether the pods of a placement can be bound one by one under their spread constraints
- `result`: the result of a search
- `mixtures`: several classes of pods
- `rules`: rules over labels that are no level

Which module answers which request:

    one class of pods                                   level_search, packing.domain_packing
      many sums (large gangs without a level)           + packing.joint_bounds
    several classes                                     + mixtures.several_classes
      with equal counts on every node                   mixtures.equivalent_classes: searched as one class
      no place before the budget ends                   mixtures.class_by_class
    affinity or anti-affinity over a label              + rules.anti_affinity_over_labels
    spread constraints                                  + rules.spread_over_labels, binding_order
      one class, no place before the effort ends        rules.spread_of_one_class
"""

from __future__ import annotations
