"""Everything that needs a connection to a cluster: watches, the ledger, the controller, certificates.

Words:
- *book*: the content of the ledger, that is all live reservations
- *hold*: a reservation with an expiry; it becomes permanent when the stored workload *claims* it
- *observed* namespace: not in mode `enforce`, so nothing is reserved or enforced there
- *gang*: pods that start together or not at all; named NAMESPACE/KIND/NAME, usually after their workload
- an object *names* a reservation if its annotation has the reservation's id

Modules:
- `api`: calls to the API server
- `state`: the watched state of the cluster; `ledger`: reservations as objects
- `controller`: reconciles reservations, gates and taints with the cluster
- `reports`: writes decisions as Reports
- `certificates`: CA and serving certificate, shared by all replicas
- `installed`: reads the settings of the installation from its Deployment; `replicas`: asks its replicas
- `runtime`: everything that one replica keeps open
- `doctor`: the checks of `bayplan doctor`; `scheduling` and `versions`: parts of them
- `running`, `standing`: read a cluster for a command: its workloads; which gangs hold a place or wait, as
  `gang_standing` (pure) finds with the controller's rules
- `cluster_objects`: adds the objects that create pods or describe nodes to `standing`
- `moving`: carries out the moves of a defragmentation; `node_marks`: the nodes that are cordoned for it

Begin with `runtime`.
"""
