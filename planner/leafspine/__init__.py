"""The rules of nod-ai's leaf-spine scheduler over a fabric of switches, and how past gangs ended there.

- `rules`: the leaves that a gang is to be placed on; `leaf_capacity`: how many pods a leaf holds
- `usage`: how full and how broken up leaves are; `history`: how past gangs ended, by leaf

Begin with `rules`.
"""
