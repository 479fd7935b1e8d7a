"""Searches for gangs with several pod classes, such as prefill and decode, or a launcher and its workers.

Words of this package: a *mixture* is a number of pods of each class. A *direction* is a weight for each pod
class; *pooled* classes are counted only by their total weight in a few directions (`packing.pooled_classes`).

- `several_classes`: every mixture of classes on every host; if these are too many, pooled classes
- `remaining_costs`: which mixtures cost too much, by the pool of the domains that are still to come
- `host_assignment`: whether the gang fits on chosen hosts, and which pods each host gets
- `equivalent_classes`: classes of which every node takes equal numbers are searched as one

The package offers `SeveralClassesPacking`, a `DomainPacking` for several classes. Begin with
`several_classes`.
"""

from __future__ import annotations
