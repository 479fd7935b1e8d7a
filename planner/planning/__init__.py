"""`plan`, the entry point of the planner, and what is derived from its answer.

- `plan`: the placement of a whole gang, or why it has none
- `admitted`: the answer for a gang with a placement
- `replay`: the answer for a gang that already holds a reservation
- `reservation`, `node_affinity`: what an answer reserves, and the terms that pin pods to it
- `details`: the numbers behind an answer; `holding_words`: what a gang holds and why, in words
- `aside`: a gang planned while others are; `first_place`: the place that a gang without one gets first
- `defragmentation`: which gangs and pods to move so that whole domains, or a waiting gang's place, are free

Begin with `plan`.
"""
