"""The controller: one replica that keeps reservations, gates and taints true to the cluster.

`reconcile` (pure) says what should be done in a `world`, `replan` and `restore` (pure) where a gang
goes whose nodes or reservation are gone, `follow` (pure) where it stands that was bound elsewhere,
`scheduler_words` why nothing binds it; `gated_pods` and `node_taints` what is patched; `controller` does
it, `leader` chooses the replica, `events` tells people, at the `pace` of their place in the queue,
`gang_history` remembers for the leaf-spine rules, `recovery_metrics` how soon a gang that lost a node has a
place again. Begin with `reconcile`.
"""
