"""Commands that inspect a cluster, or propose changes to it. Each command is a file of its own.

- `queue`, `why`, `top`, `verify`, `reservations` and the live page `ui` show the current state
- `topology`, `nodes` and `defrag` propose changes to an administrator; `carry_out` performs the moves of
  `defrag`
- `generate` prints objects of other systems (KAI, Kueue, NVLink domains) for the cluster

The *reservable level* of a topology is the coarsest level whose domains gangs hold whole, usually that of
racks; `top` lists its domains, and `defrag` frees them, unless another level is given.

Begin with `top`.
"""
