"""The rules of nod-ai's leaf-spine scheduler, and the history of past gangs by leaf.

The rules apply to gangs with an annotation of that scheduler (`topology.scheduler/...`).

- `rules`: the leaves that a gang is placed on; `leaf_sets`: the sets of leaves to try, the best first;
  `leaf_capacity`: how many pods of a gang fit on a leaf
- `usage`: utilization and fragmentation of leaves; `history`: how past gangs ended, by leaf

A *leaf* is a switch with the nodes connected to it: a domain of the topology's leaf level. *Spines* are the
switches that connect leaves. `planner.cluster.switch_graph` has both, as a *fabric* (`LeafSpine`). The *room*
of a leaf is the nodes that the gang may use there, and the pods that fit on them.

Begin with `rules`.
"""
