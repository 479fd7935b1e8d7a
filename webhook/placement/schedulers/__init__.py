"""Adapts the plan of a workload to what KAI and Kueue decide about the workload. Pure.

- `kai_preemption`: gangs for which KAI preempts other pods, and which pods it preempts
- `evictions`: the nodes that these gangs may use, and when they are let in
- `kai_queue`: gangs that request more than their KAI queue allows
- `kueue_admission`: workloads in a Kueue queue, which are planned once Kueue has admitted them

Begin with `kueue_admission`.
"""
