"""The domains of a topology as a tree, with the nodes of each.

- `tree`: the domains of one topology, and the tree after a node came, changed or went; `subtree`: one domain
- `topology_membership`: which topologies a node belongs to

Used by other packages: `TopologyTree`, `Subtree`. Begin with `tree`.
"""
