"""The cheapest way to place all pods of a gang inside one domain, by sums of what its parts hold.

It offers `DomainPacking`; `SeveralClassesPacking` of `mixtures` is built on it. It knows domains by their
capacity and eligibility alone: which of them are looked at, at which level, is the search's affair. Begin
with `domain_packing`.

- `domain_packing`: the least cost of the gang in a domain, and the placement of that cost
- `domain_options`: what each domain could hold, at what least cost, from the hosts up
- `work_pieces`: the budget, divided over pieces of work
- `frontier`: sums of options, on the way to a goal within a limit, and which options make a sum
- `pod_counts`: sums of numbers of pods, of one class or several; `kept_counts`: what a domain may keep of
  them by the levels that the pods ask for
- `bounds`, `joint_bounds`: the domains that some pods need at the least, so that dear sums are dropped
- `capacity_classes`: domains that come to the same are worked out once
- `pooled_classes`: what hosts hold of several classes as a few sums
"""

from __future__ import annotations
