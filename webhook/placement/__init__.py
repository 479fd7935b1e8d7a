"""The plan of a workload, and what it writes onto objects: annotations, affinity, taints. Pure.

- `workload_plan`: every gang of a workload planned; `pod_gang`: the gang of a pod, and the plan that it has
- `queue`: gangs that wait are planned before one that is only now applied, in the `fair_order` of priority,
  share of the namespace and age
- `gang_seat`: a pod that arrives for a gang which has its place; `gang_members`: a gang of several stored
  objects, on its seats
- `stamp`: the plan written as annotations and scheduling gate, and read back
- `pod_affinity`: the node affinity of a former plan taken away again
- `stated_amounts`: what the author of an object asked for, before policies
- `kai_preemption`: gangs for which KAI makes room, and which pods it preempts
- `kueue_admission`: workloads in a queue of Kueue's, which are planned once it has admitted them
- `kai_queue`: gangs that ask for more than their queue of KAI's may use
- `hold`: a place held for a gang until it claims it
- `hold_limits`: how much the gangs of a namespace may hold
- `taints`: domains that a gang holds whole, kept free of other pods
- `moving`: which gangs and pods may be moved elsewhere, and for whom they are
- `group_members`, `service_roles`: which other pods and services belong to a gang
- `rank_order`: which node each rank of a PodSet goes to

Begin with `workload_plan`.
"""
