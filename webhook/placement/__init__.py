"""Plans the gangs of a workload, and writes the plan onto objects: annotations, affinity, taints. Pure.

- `planning`: plans every gang of a workload; `workload_plan`: the result
- `pod_gang`: the gang of a pod, and the plan that this gang already has
- `resized`: seats for a gang that runs already, and asks for other numbers of pods
- `replicas`: what is said of several gangs of one object together: they start together, or fit only in part
- `queue`: plans waiting gangs before a newly applied one, in the `fair_order` of priority, namespace share
  and age
- `shared_gangs`: seats for the objects of a gang that consists of several objects
- `stored_members`: rejects an object that can never run together with the stored members of its gang
- `stamp`: writes the plan as annotations and scheduling gate, and reads it back
- `pod_affinity`: removes the node affinity that an earlier plan wrote
- `stated_amounts`: the amounts that the author of an object stated, before policies changed them
- `schedulers`: what KAI and Kueue decide about a workload
- `hold`: the temporary reservation of a place until its object claims it
- `hold_limits`: how much the gangs of a namespace may hold
- `gate`: the scheduling gate of pods
- `taints`: taints, and the affinity of pods without a place, keep other pods off domains that a gang holds
  whole
- `moving`: which gangs and pods may be moved, and for which gang
- `group_members`, `service_roles`: which other pods and services belong to a gang
- `rank_order`: which node each rank of a PodSet goes to

Words:

- *seat*: the room on a node that a gang's reservation has for one pod; its name is that of its PodSet there
- *mode* of a reservation: `domain` if the gang holds whole domains, `nodes` if it holds room on single nodes
- *kept seat*: a seat for a member of the gang that is not known yet; its PodSet is `OTHERS`
- *share*: the part of a gang that one object contributes, if several objects form the gang (in `fair_order`:
  the fraction of the GPUs that a namespace would have)
- *replica*: a gang that is a part of one object, for example a group of a LeaderWorkerSet
- *gate*: Bayplan's scheduling gate, which the pods of a queued gang have
- *pinned*: of a pod, restricted by node affinity to its gang's place
- *replayed*: of an answer, repeated from the gang's reservation instead of planned

Begin with `planning`.
"""
