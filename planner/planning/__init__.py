"""`plan`, the one entry to the planner, and what follows from its answer.

- `plan`: where a whole gang goes, or why it cannot
- `admitted`: the answer of a gang that has a place
- `replay`: the answer of a gang that holds a place already
- `reservation`, `node_affinity`: what an answer reserves, and the terms that keep pods in it
- `details`: how an answer came about

Begin with `plan`.
"""
