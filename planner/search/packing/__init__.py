"""Finds the cheapest way to place all pods of a gang inside one domain, by adding up what its children hold.

This package offers `DomainPacking`, on which `SeveralClassesPacking` of `mixtures` is built. It sees only a
domain's capacity and eligibility; the level search chooses which domains to pack. Begin with
`domain_packing`.

- `domain_packing`: the least cost of the gang in a domain, and the placement of that cost - `domain_options`:
how many pods each domain could hold, and at what least cost, from the hosts up - `work_pieces`: the budget,
divided over pieces of work - `frontier`: adds up options towards a goal within a cost limit, and finds which
options make up a sum - `pod_counts`: arithmetic on pod counts, of one class or several; `kept_counts`: how
many of the pods that fit
  a domain may keep under the levels that the pods require
- `bounds`, `joint_bounds`: the fewest domains that some pods need, so that too expensive sums are dropped
- `capacity_classes`: groups equal domains, so that each group is computed once
- `pooled_classes`: what hosts hold of several classes, as a few sums
"""

from __future__ import annotations
