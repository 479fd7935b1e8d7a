"""How many pods fit on one node, by the rules of kube-scheduler, the kubelet and the device plugins.

- `packing`: how many further pods of a class, or of several classes together, fit on a node
- `eligibility`: whether a pod may be on a node at all: taints, selectors, affinity, cordon, readiness
- `topology_manager`, `numa_state`: whether the kubelet would refuse a pod because of its NUMA zones
- `node_groups`: groups of equal nodes, and which groups could take a pod
- `runtime_class`: what a RuntimeClass adds to its pods: overhead, node selector, tolerations
- `nvlink`, `gpu_sharing`, `mig`: NVLink domains inside a host, shares of GPUs, MIG instances

An *obstacle* is a cause, as text, that keeps a pod from a node, "" for none. *Temporary taints* express the
current condition of a node (`PASSING_TAINTS` in planner.model.labels); the empty cluster has none of them. A
*kind of nodes* (`NodeGroup`) is the nodes with the same GPU product, taints and amounts (in planner.devices:
with the same devices). A pod's *alignment* is the requests for which the kubelet chooses NUMA zones. A
*combination* is a number of pods of each pod class; it is *maximal* if no pod can be added to it.

Used by others: `max_pods`, `host_fit`, `label_obstacle` and `condition_obstacle`, `SharedGpus`, `NumaState`.

Begin with `packing`.
"""
