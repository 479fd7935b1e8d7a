"""Checks of the node properties that plans depend on: labels and kubelet settings.

- `finding`: a fault of a node, and the label that corrects it if known
- `labels`: compares levels, cliques, GPU feature discovery, NodeFeatures and ResourceSlices with each other
- `gpu_matrix`: reads the output of `nvidia-smi topo -m`, and derives labels from it
- `kubelet`: the recommended KubeletConfiguration for pods with exclusive CPUs, and how a node differs from it
- `mig_plan`: how to divide the GPUs of idle nodes for requested MIG slices

Begin with `labels`.
"""

from __future__ import annotations
