"""The node side that plans rest on: labels that are missing or contradict each other, kubelets' settings.

- `finding`: what is wrong with a node, and the label that mends it where that is known
- `labels`: levels, cliques, GPU feature discovery, NodeFeatures and ResourceSlices held against each other
- `gpu_matrix`: what `nvidia-smi topo -m` says of a node's GPUs, and the labels that follow
- `kubelet`: the KubeletConfiguration advised for pods with exclusive CPUs, and how a node differs from it
- `mig_plan`: how the GPUs of idle nodes are cut for slices that are asked for

Begin with `labels`.
"""

from __future__ import annotations
