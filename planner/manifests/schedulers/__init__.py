"""Which scheduling systems a cluster has, and what their queues allow.

- `systems`: the table of systems: how each is recognised, and its queues and topologies
- `kai_queues`: how much a KAI queue may use
- `kueue_queues`: which topologies a Kueue queue uses

Begin with `systems`.
"""
