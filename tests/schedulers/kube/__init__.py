"""Random clusters and random gangs: the plan beside the real kube-scheduler.

In each cluster the gangs come one after the other. A gang is one or two Jobs. It is planned as `bayplan plan`
plans it; then its Jobs are created as they are, and, if the plan admitted them, once more with their pods
confined to the nodes of the plan. There are two differences: kube-scheduler starts all pods of a gang that
the plan did not admit, or it does not start all of them on the nodes of the plan.

- `random_nodes`, `random_constraints`, `random_pods`, `random_volumes`, `random_devices`: what a cluster and
  a gang are made of, all from one `random.Random`
- `gang`: a gang, what it needs beside its Jobs, and its plan
- `cluster`: creates the objects in the control plane, and waits until kube-scheduler has decided
- `volume_provisioner`: makes the volumes that claims wait for
- `comparison`: the run, and the file in which a difference is kept
"""
