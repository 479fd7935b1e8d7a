"""The controller: the leading replica, which reconciles reservations, gates and taints with the cluster.

Words:
- *round*: one pass of the controller over the cluster; its input is a `World`, its result a list of actions
- *gated* pod: it has Bayplan's scheduling gate; the controller *admits* it by removing the gate
- *held back* pod: it has a scheduling gate of another controller, which Bayplan never removes
- *place*: what a reservation holds; *pin*: the required node affinity that keeps a pod in its place
- *seat*: room for one pod of a PodSet on one node, as a reservation counts it
- *bereft* gang: it names a reservation that is not in the book; the controller *restores* its place
- *verdict*: why the scheduler does not bind a pod, from the pod's condition PodScheduled
- *member*: an object of a gang of several objects; a *late* one joins after the gang has its place
- *adopt*: reserve the nodes that Kueue's Topology-Aware Scheduling has assigned to a Workload

Modules:
- `reconcile` (pure): returns the actions, as `steps`, for a `world`
- `memory` (pure): what former rounds have shown; a state that may be transient is acted on once it lasts
- `ownerless`: reservations whose object no watch shows, and whether the API server stores that object
- `replanning/` (pure): the new place of a gang that lost nodes or its reservation, or was bound elsewhere
- `noted_places` (pure): workloads whose annotation does not name the place of their gangs
- `late_members` (pure): room for late members beside what their gang holds
- `waiting/` (pure): which waiting gangs get a place, in the order of the queue
- `kueue/`: reservations for pods that Kueue places
- `evictions` (pure): lets in gangs for which their scheduler evicts others
- `unbound_pods` (pure): pods that the scheduler leaves unbound for long
- `records`: what is recorded from round to round, for the `memory` of the next; `pace`: how often a queue
  position is reported, and how long a state must last before the controller acts on it
- `actions/`: carries out the steps
- `controller`: runs the rounds; `leader`: elects the leading replica
- `node_taints`: the taints of reserved domains
- `gang_history`: how gangs ended on each leaf, for the leaf-spine rules
- `recovery_metrics`: how soon a gang that lost a node has a place again

Begin with `reconcile`.
"""
