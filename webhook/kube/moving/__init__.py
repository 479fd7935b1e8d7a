"""Carries out the moves of a defragmentation, which frees nodes by evicting pods that have another place.

`mover` cordons nodes, evicts the pods of one gang after the other, and waits until they are bound again.
`defragmenter` is the leader's task that makes such moves for gangs that have waited long; `metrics` counts
them. Begin with `mover`.
"""
