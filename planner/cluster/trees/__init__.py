"""The domains of a topology as a tree, with the nodes of each.

- `tree`: the domains of one topology, and the tree after a node came, changed or went; `subtree`: one domain
- `trees_by_topology`: the trees of all topologies
- `topology_membership`: which topologies a node belongs to

Words: a *place* (`Place`) is here the path of a node in the tree. A branch is *named* if the nodes in it have
the label of its level, else *unnamed*: then it is no domain. A *leaf* is here a host, not a leaf switch.

Used by other packages: `TopologyTree`, `Subtree`. Begin with `tree`.
"""
