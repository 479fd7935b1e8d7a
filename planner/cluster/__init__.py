"""A cluster at one moment, immutable: nodes in topology trees, pods, reservations and free capacity.

- `snapshot`: the cluster at one moment, and the next snapshot after a change
- `build`: a snapshot from objects in any order
- `infrastructure`: the part that consecutive snapshots share
- `facts`: what an infrastructure states besides nodes and topologies; `hardware_update`: a snapshot with
  other facts
- `trees`: the domains of topologies, and which topologies a node belongs to
- `switch_graph`: a topology's switches and links
- `delta`: the difference between two snapshots, as a value that can be sent to another process
- `usage`: bound pods and reservations by node, and what is taken and free on one node
- `capacity`, `capacity_cache`: the free capacity of a domain as a value, so equal domains are computed once
- `plan_cache`: results that later plans can reuse, and when each entry becomes stale
- `census`: counts for people: GPUs by domain, by node and by namespace

Words: a *branch* is a domain in a topology's tree, with the branches and hosts inside it. A *hold* (`Hold`)
is here a reservation as seen from one of its nodes, with the amounts that it uses there. *Promised* amounts
are used by bound pods or reserved by gangs. A domain is *opened* if one of its nodes is in use by a pod,
other than those of DaemonSets, or by a hold, else *pristine*. The *empty cluster* has the same nodes, all
ready and without cordons, and no pods or reservations: what does not fit there can never run.

Used by other packages: `Snapshot`, `snapshot`, `Infrastructure`, `with_hardware`, `TopologyTree`, `Subtree`,
`DomainCapacity`, `PlanCache`, `CacheSection`, `DerivedSection`, `census`, `leaf_spine`.

Begin with `snapshot`, then `trees` and `capacity`.
"""
