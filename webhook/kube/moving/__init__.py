"""Moves of a defragmentation, carried out on the cluster.

`mover` cordons, evicts gang by gang and waits for each; `defragmenter` is the leader, which has it done for
gangs that have waited for long, counted by `metrics`. Begin with `mover`.
"""
