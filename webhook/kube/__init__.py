"""The cluster side: snapshots from watches, the ledger in the API server, the controller, certificates.

- `api`: calls to the API server
- `state`: what the watches know; `ledger`: who holds what, as objects
- `controller`: what keeps reservations, gates and taints true to the cluster
- `reports`: what was decided, written as Reports
- `certificates`: CA and serving certificate, shared by all replicas
- `runtime`: all that one replica keeps open; `doctor`: the checks of `bayplan doctor`,
  those of other schedulers in `scheduling`
- `running`, `standing`: a cluster looked at from outside: its workloads; who holds a place, and who waits
- `moves`: the same with all that defragmentation reads; `node_objects`: with what describes nodes

Begin with `runtime`.
"""
