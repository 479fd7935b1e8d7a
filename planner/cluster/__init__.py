"""A cluster at one moment: nodes in trees, what is on them, free capacity by domain. All of it immutable.

- `snapshot`: the moment, and the way to the next: with a pod, a node, a reservation, other hardware
- `infrastructure`: what lasts from one snapshot to the next; `hardware_update`: other words about it
- `tree`: the domains of one topology; `switch_graph`: its switches and links
- `occupancy`: bound pods and holds by node; `persistent_map`: a mapping that shares what has not changed
- `capacity`, `capacity_cache`: what a domain holds, as a value: equal domains are looked at once
- `plan_cache`: what one plan works out and a later plan can use again; what makes each entry stale
- `census`: domains counted for people

Used by others: `Snapshot`, `snapshot`, `Infrastructure`, `with_hardware`, `TopologyTree`, `Subtree`,
`DomainCapacity`, `PlanCache`, `CacheSection`, `DerivedSection`, `census`, `leaf_spine`.

Begin with `snapshot`, then `tree` and `capacity`.
"""
