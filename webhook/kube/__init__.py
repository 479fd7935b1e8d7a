"""The cluster side: snapshots from watches, the ledger in the API server, the controller, certificates.

- `api`: calls to the API server
- `state`: what the watches know; `ledger`: who holds what, as objects
- `controller`: what keeps reservations, gates and taints true to the cluster
- `reports`: what was decided, written as Reports
- `certificates`: CA and serving certificate, shared by all replicas
- `installed`: what the Deployment tells of the installation
- `runtime`: all that one replica keeps open; `doctor`: the checks of `bayplan doctor`,
  those of other schedulers in `scheduling`, of versions in `versions`
- `running`, `standing`: a cluster looked at from outside: its workloads; who holds a place, and who waits
- `cluster_objects`: the same with what made pods, or describes nodes
- `moving`: the moves of a defragmentation, carried out, for a user or by the leader; `node_marks`: the nodes
  that are cordoned for it

Begin with `runtime`.
"""
