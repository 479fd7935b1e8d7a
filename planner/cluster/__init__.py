"""A cluster at one moment, immutable: nodes in topology trees, pods and reservations, free capacity.

- `snapshot`: the cluster at one moment, and the next snapshot after a change
- `infrastructure`: what consecutive snapshots share; `hardware_update`: NUMA zones, claims and settings
- `tree`: the domains of one topology, `subtree`: one of them; `topology_membership`: which topologies a node
  is part of; `switch_graph`: its switches and links
- `delta`: what makes of one snapshot a later one, as a value that can be sent
- `occupancy`: bound pods and holds by node; `node_usage`: what is taken and left on one node;
  `persistent_map`: an immutable mapping with cheap changes
- `capacity`, `capacity_cache`: what a domain holds, as a value: equal domains are computed once
- `plan_cache`: results that later plans can reuse, and when each entry becomes stale
- `census`: domains counted for people; who has which GPUs, by node and by namespace

Used by others: `Snapshot`, `snapshot`, `Infrastructure`, `with_hardware`, `TopologyTree`, `Subtree`,
`DomainCapacity`, `PlanCache`, `CacheSection`, `DerivedSection`, `census`, `leaf_spine`.

Begin with `snapshot`, then `tree` and `capacity`.
"""
