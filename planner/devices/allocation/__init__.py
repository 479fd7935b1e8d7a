"""Decides which claims can get devices of one node at the same time.

- `allocator`: which claims can be allocated together
- `demand_fit`: whether a node's devices meet a demand
- `partitions`: devices that share counters

Begin with `allocator`.
"""
