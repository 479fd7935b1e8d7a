"""Finds the cheapest way to place all pods of a gang inside one domain, by adding up what its children hold.

Words of this package: a *count* is a number of pods of each class; a *packing* of a host is a count that fits
on it; an *option* of a domain is a count that it could hold, with its lowest cost; a *sum* is a total of
options of several domains; a *stage* contains the sums over the first domains of a list, each with its lowest
cost; the *goal* or *target* is the count to reach. A *ceiling* is a maximum cost; a *price* is the cost of
using one more domain of a level. The *measure* of a count is its pods of each class and, for several classes,
their total requests. A *peak* is the maximum measure that one domain, or a number of domains, of a level can
hold. The *reach* of a domain is the maximum count that it can hold (an upper bound for several classes).

- `domain_packing`: the lowest cost of the gang in a domain, and the placement of that cost
- `domain_options`: the options of each domain, from the hosts up
- `work_pieces`: the budget, divided into pieces of work
- `frontier`: adds up options to sums within a cost limit, and finds the options that make up a sum
- `kept_counts`: how many of the pods that fit in a domain are allowed there by the rules of its level
- `bounds`, `joint_bounds`: the fewest domains that some pods need, so that expensive sums are dropped;
  `largest_domains`: what the largest domain of each level holds, for such bounds
- `least_cost`: a lower bound of the cost of a domain, so that expensive domains are not searched
- `capacity_classes`: groups equal domains into capacity classes, so that each class is computed once
- `pooled_classes`: counts of several pod classes, reduced to a few weighted sums

The package offers `DomainPacking`, on which `SeveralClassesPacking` of `mixtures` is built. It depends only
on a domain's capacity and eligibility; the level search chooses which domains to pack. Begin with
`domain_packing`.
"""

from __future__ import annotations
