"""Searches for gangs with several pod classes: prefill and decode, a launcher and its workers.

It offers `SeveralClassesPacking`, a `DomainPacking` for several classes. Begin with `several_classes`.

- `several_classes`: every mixture of classes on every host; where these are too many, pooled
- `host_assignment`: whether chosen hosts hold the gang together, and which pods each gets
- `equivalent_classes`: classes that no node tells apart are searched as one
- `class_by_class`: one class after another, where the search of all ended without a place
"""

from __future__ import annotations
