"""Which scheduling systems a cluster has, what they do, and what their queues allow.

- `systems`: the table of systems: how each is recognised, and its queues and topologies
- `scheduler_facts`: what each system reads and does
- `kai_queues`: how much a KAI queue may use
- `kueue_queues`: which topologies a Kueue queue uses

Begin with `systems`.
"""
