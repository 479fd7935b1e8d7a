"""Finds the best placement of a resolved request in a topology tree, or a valid one that is not proved best.

Begin with docs/how-a-plan-is-found.md, then `place`. Words of this package:

- pod class: pods of a gang with the same shape and constraints, which the search counts instead of naming
- domain: a node of the topology tree: the root, a block, a rack, a host; a *pristine* domain is unused, and a
  placement *opens* the pristine domains that it uses
- capacity: what is free in a domain, as a value: equal domains share one object (`planner.cluster.capacity`)
- to hold: a domain *holds* the pods that fit in it; a gang holds what it has reserved
- chunk: neighbouring children of a domain with very many children, which are searched as one
- match: the `EligibilityMap` of a domain: which nodes the pods may use by labels
- reservable level: the coarsest level whose domains a gang holds whole if it spans several of them
- relaxation: the request with each preferred level made required, or dropped to a coarser one
- attempt: what the search found at one level: the best domain, and how many pods fit there (`LevelAttempt`)
- budget: the number of steps that a search may take; a search is *exact* or *complete* if its budget did not
  end it. A *hard* budget is the last: when it ends, no further search with another budget may follow
- effort: the work that all level searches for one gang with rules over labels may do together
- beam: in a search that has used up its budget, the number of partial results that are kept at each step

The modules are in the order of their use:

- `place`: the best placement of a problem, in each topology that it may mean; `outcome`: the result of that
- `space`: the search space: a tree with the capacity that one gang may use, now or in the empty cluster
- `level_search`: level by level, finest first: the first level with a domain for the whole gang
- `domain_ranking`: the best domain of a level, and the domain that holds the most pods if none holds all
- `packing`: the cheapest way to place all pods inside one domain; `pod_counts`: the arithmetic of its counts
- `objective`: the cost of a placement as one integer
- `eligibility_map`: which nodes the pods may use by the nodes' labels; `domain_caps`: the maximum number of
  pods in a domain
- `result`: the result of a search
- `mixtures`: requests with several pod classes; `class_by_class`: one class after another;
  `beside_a_pod`: pods with affinity beside one pod of another PodSet
- `rules`: affinity, anti-affinity and spread constraints over labels that are no level of the topology

Which module answers which request:

    one class of pods                                   level_search, packing.domain_packing
      many sums (large gangs without a level)           + packing.joint_bounds
    several classes                                     + mixtures.several_classes
      with equal counts on every node                   mixtures.equivalent_classes: searched as one class
      no place before the budget ends                   class_by_class
      affinity between PodSets in several domains       beside_a_pod, class_by_class
    affinity or anti-affinity over a label              + rules.anti_affinity_over_labels
    spread constraints                                  + rules.spread_over_labels, rules.binding_order
      one class, refuted before it is searched          rules.room_of_domains
      one class, no place before the effort ends        rules.spread_of_one_class, rules.spread_one_by_one
"""

from __future__ import annotations
