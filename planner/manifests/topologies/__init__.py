"""Topologies: from Topology objects, and inferred from the labels that nodes carry.

- `objects`: Topology objects of KAI, of Kueue and of Bayplan, with their links
- `label_presets`: which labels stand for levels, by source
- `proposal`: a Topology object for the labels that nodes carry
- `scheduler_objects`: the queues, flavors and ComputeDomains that go with it

Begin with `objects`.
"""

from __future__ import annotations
