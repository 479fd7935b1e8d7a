"""The cheapest way to place all pods of a gang inside one domain, by sums of what its parts hold.

It offers `DomainPacking`; `SeveralClassesPacking` of `mixtures` is built on it. It knows domains by their
capacity and eligibility alone: which of them are looked at, at which level, is the search's affair. Begin
with `domain_packing`.

- `domain_packing`: options of domains, from the hosts up, and the placement that is read off them
- `frontier`: sums of options, on the way to a goal within a limit
- `pod_counts`: sums of numbers of pods, of one class or several
- `bounds`, `joint_bounds`: the domains that some pods need at the least, so that dear sums are dropped
- `capacity_classes`: domains that come to the same are worked out once
- `pooled_classes`: what hosts hold of several classes as a few sums
"""

from __future__ import annotations
