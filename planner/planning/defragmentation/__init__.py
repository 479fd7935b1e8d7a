"""Defragmentation: which gangs and pods to move so that whole domains or a waiting gang's place are free.

Pure: nothing is moved here, and the same snapshot gives the same moves.

- `movable`: what moves as a whole, what that costs, and what may not be moved
- `cheapest`: sets of bundles of movables, from the cheapest on
- `evacuation`: another place for each of a set, one after the other, or by `joint_plan` all at once
- `occupants`: who is in a domain
- `steps`: how moves are carried out, one movable after the other, and what stops them
- `limits`: those of moves that nobody asked for
- `free_domains`: so many whole domains; `gang_place`: the place of a gang that waits; both give a `result`

Begin with `free_domains`.
"""
