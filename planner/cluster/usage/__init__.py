"""What is taken in a cluster: by bound pods and reservations, node by node, and what that leaves.

- `occupancy`: the pods and the reservations of each node
- `node_usage`: what is taken and free on one node

Used by other packages: `carried`, `used_by`, `add`. Begin with `occupancy`.
"""
