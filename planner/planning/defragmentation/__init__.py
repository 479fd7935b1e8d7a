"""Defragmentation: which gangs and pods to move so that whole domains, or a place for a queued gang, become
free.

Pure: nothing is moved here, and the same snapshot gives the same moves.

A *movable* is a gang or a single pod that moves as a unit: its pods are evicted, and its controller creates
them again. A *bundle* is a set of movables that leave together.

- `movable`: a movable, the cost of moving it, and why it may not be moved
- `cheapest`: sets of bundles in the order of their cost
- `evacuation`: finds a new place for each movable of a set, one after the other; `joint_plan`: for all of
  them at once
- `occupants`: the movables in a domain
- `steps`: carries out moves, one movable after the other, and stops on unexpected changes
- `limits`: limits of moves that the controller makes without a request
- `free_domains`: frees a number of whole domains; `gang_place`: makes room for a queued gang
- `result`: what `free_domains` and `gang_place` return

Begin with `free_domains`.
"""
