"""How many pods one node takes, with all that kube-scheduler, kubelet and device plugins look at.

- `packing`: how many further pods of a class a node has room for
- `eligibility`: whether a pod may be on a node at all: taints, selectors, affinity, cordon, readiness
- `topology_manager`, `numa_state`: whether the kubelet would refuse a pod for its NUMA zones
- `node_groups`: equal nodes as one, and which groups could take a pod
- `nvlink`, `gpu_sharing`, `mig`: NVLink domains inside a host, parts of GPUs, MIG slices

Used by others: `max_pods`, `host_fit`, `label_obstacle` and `condition_obstacle`, `SharedGpus`, `NumaState`.

Begin with `packing`.
"""
