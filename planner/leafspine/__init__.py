"""nod-ai's leaf-spine rules over a fabric of switches, and the history of past gangs by leaf.

- `rules`: the leaves that a gang is placed on; `leaf_capacity`: how many pods a leaf holds
- `usage`: utilization and fragmentation of leaves; `history`: how past gangs ended, by leaf

Begin with `rules`.
"""
