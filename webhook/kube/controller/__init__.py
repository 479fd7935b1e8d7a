"""The controller: one replica that keeps reservations, gates and taints true to the cluster.

`reconcile` (pure) says what should be done in a `world`, in `steps`; `replan` and `restore` (pure) where a
gang goes whose nodes or reservation are gone, `follow` (pure) where it stands that was bound elsewhere,
`late_members` (pure) what members of a gang find that join it when it has its place, `kueue/` what is held
where Kueue places the pods, `scheduler_words` why nothing binds them; `gated_pods` and `node_taints` what is
patched, `pod_patches` how,
`place_notes` (pure) what is written of a place; `controller` does it, `leader` chooses the replica, `events`
tells people, at the `pace` of their place in the queue, `gang_history` remembers for the leaf-spine rules,
`recovery_metrics` how soon a gang that lost a node has a place again. Begin with `reconcile`.
"""
