"""Defragmentation: which gangs and pods to move so that whole domains, or a place for a queued gang, become
free.

Pure: nothing is moved here, and the same snapshot gives the same moves.

- `movable`: a gang or pod that moves as a unit, the cost of moving it, and why it may not be moved
- `cheapest`: sets of bundles of movables in the order of their cost
- `evacuation`: another place for each movable of a set, one after the other; `joint_plan`: for all at once
- `occupants`: the movables in a domain
- `steps`: carries out moves, one movable after the other, and stops on unexpected changes
- `limits`: limits of moves that nobody requested
- `free_domains`: frees a number of whole domains; `gang_place`: makes room for a queued gang
- `result`: what both return

Begin with `free_domains`.
"""
