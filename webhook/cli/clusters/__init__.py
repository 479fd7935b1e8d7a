"""Commands that inspect a cluster, or propose changes to it. Each command is a file of its own.

- `queue`, `why`, `top`, `verify`, `reservations` and the live page `ui` show the current state
- `topology`, `nodes` and `defrag` propose changes to an administrator; `carry_out` performs the moves of
  `defrag`
- `generate` prints objects of other systems (KAI, Kueue, NVLink domains) for the cluster

Begin with `top`.
"""
