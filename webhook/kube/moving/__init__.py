"""Carries out the moves of a defragmentation on the cluster.

`mover` cordons, evicts gang by gang and waits for each. `defragmenter` is the leader's task that moves others
for gangs that have waited long; `metrics` counts its moves. Begin with `mover`.
"""
