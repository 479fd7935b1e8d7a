"""Which scheduling systems a cluster shows, and what their queues allow.

- `systems`: the table of systems, by what each is known, with their queues and topologies
- `kai_queues`: how much a queue of KAI's may use
- `kueue_queues`: the topologies that a queue of Kueue's leads to

Begin with `systems`.
"""
