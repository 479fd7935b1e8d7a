"""The usage of nodes: what bound pods and reservations take on each node, and what remains free.

- `occupancy`: the bound pods and the reservations of each node
- `node_usage`: the taken and the free amounts of one node

Used by other packages: `carried`, `used_by`, `add`. Begin with `occupancy`.
"""
