"""Finds the cheapest way to place all pods of a gang inside one domain, by adding up what its children hold.

- `domain_packing`: the lowest cost of the gang in a domain, and the placement of that cost
- `domain_options`: how many pods each domain could hold, and at what lowest cost, from the hosts up
- `work_pieces`: the budget, divided over pieces of work
- `frontier`: adds up options towards a goal within a cost limit, and finds the options that make up a sum
- `pod_counts`: arithmetic on pod counts, of one class or several
- `kept_counts`: how many of the pods that fit a domain may keep under the required levels
- `bounds`, `joint_bounds`: the fewest domains that some pods need, so that expensive sums are dropped
- `capacity_classes`: groups equal domains, so that each group is computed once
- `pooled_classes`: what hosts hold of several classes, as a few sums

The package offers `DomainPacking`, on which `SeveralClassesPacking` of `mixtures` is built. It sees only a
domain's capacity and eligibility; the level search chooses which domains to pack. Begin with
`domain_packing`.
"""

from __future__ import annotations
