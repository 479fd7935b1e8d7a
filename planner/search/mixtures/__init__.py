"""Searches for gangs with several pod classes, such as prefill and decode, or a launcher and its workers.

- `several_classes`: every mixture of classes on every host; if these are too many, pooled
- `host_assignment`: whether chosen hosts hold the gang together, and which pods each gets
- `equivalent_classes`: classes of which every node takes equal numbers are searched as one
- `class_by_class`: one class after another, if the search of all ended without a placement

The package offers `SeveralClassesPacking`, a `DomainPacking` for several classes. Begin with
`several_classes`.
"""

from __future__ import annotations
