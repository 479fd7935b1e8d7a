"""Topologies: read from Topology objects, and inferred from the labels of nodes.

- `objects`: Topology objects of KAI, of Kueue and of Bayplan, with their links
- `label_presets`: the labels that describe levels, by source (a cloud, Topograph, GPU feature discovery)
- `proposal`: a proposed Topology object for the labels of the nodes
- `scheduler_objects`: the queues, flavors and ComputeDomains that go with it

Begin with `objects`.
"""

from __future__ import annotations
