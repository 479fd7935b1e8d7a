"""The cluster side: snapshots from watches, the ledger in the API server, the controller, certificates.

- `api`: calls to the API server
- `state`: the watched state of the cluster; `ledger`: reservations as objects
- `controller`: reconciles reservations, gates and taints with the cluster
- `reports`: writes decisions as Reports
- `certificates`: CA and serving certificate, shared by all replicas
- `installed`: reads the settings of the installation from its Deployment
- `runtime`: everything that one replica keeps open
- `doctor`: the checks of `bayplan doctor`; `scheduling`: of other schedulers; `versions`: of versions
- `running`, `standing`: read a cluster from outside: its workloads; who holds a place, and who waits
- `cluster_objects`: the same, with the objects that create pods or describe nodes
- `moving`: carries out the moves of a defragmentation; `node_marks`: the nodes that are cordoned for it

Begin with `runtime`.
"""
