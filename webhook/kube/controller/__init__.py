"""The controller: the leading replica that reconciles reservations, gates and taints with the cluster.

- `reconcile` (pure): what should be done in a `world`, in `steps`
- `memory` (pure): what former rounds have shown, for what may be transient
- `ownerless`: reservations whose object no watch shows, and whether the API server stores it all the same
- `replanning/` (pure): the new place of a gang that lost nodes or its reservation, or was bound elsewhere
- `late_members` (pure): room for members that join a gang after it has its place
- `kueue/`: what is held for pods that Kueue places
- `scheduler_words`: why the scheduler does not bind a gang's pods
- `gated_pods`, `node_taints`: the patches of pods and nodes; `pod_patches`: applies them to pods
- `place_notes` (pure): the annotations about a place; `workload_notes`: writes them onto workloads
- `controller`: carries out the steps; `leader`: elects the replica
- `events`: events for users, at the `pace` of their position in the queue
- `gang_history`: the history for the leaf-spine rules
- `recovery_metrics`: how soon a gang that lost a node has a place again

Begin with `reconcile`.
"""
