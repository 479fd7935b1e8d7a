"""Commands that look at a cluster: who holds, who waits, why, what could be mended. A file each.

`queue`, `why`, `top`, `verify`, `reservations` and the live page `ui` show what is; `topology`, `nodes` and
`defrag` propose what an administrator may change (`carry_out` does what a defragmentation proposes), and
`generate` prints the objects of other systems that the cluster wants. Begin with `top`.
"""
