"""The names of GPU resources and of the node labels that describe GPUs.

Some names are the planner's own: it counts claimed devices and KAI's GPU shares as resources, too.
"""

from __future__ import annotations

from collections.abc import Mapping

GPU = "nvidia.com/gpu"
"""A GPU of NVIDIA's device plugin; with MIG strategy single or with time slicing, a part of a GPU."""

SHARED_GPU = "nvidia.com/gpu.shared"
"""A time slice of a GPU, if the device plugin is configured to rename shared resources."""

GPU_RESOURCES = (GPU, "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")
"""Whole GPUs and accelerators of all vendors whose device plugin Bayplan knows."""

MIG_PREFIX = "nvidia.com/mig-"
"""Prefix of the resource of a MIG profile under MIG strategy mixed: `nvidia.com/mig-1g.10gb`."""

DEVICE_NAMES, DEVICE_PREFIXES = (*GPU_RESOURCES, SHARED_GPU), (MIG_PREFIX,)
"""The resources by which containers request GPUs or parts of GPUs: names, and prefixes of further names."""

MISSPELT_DEVICES: Mapping[str, str] = {
    "nvidia.com/gpus": GPU,
    "nvidia.com/GPU": GPU,
    "nvidia.com/GPUs": GPU,
    "nvidia/gpu": GPU,
    "nvidia/gpus": GPU,
    "nvdia.com/gpu": GPU,
    "nividia.com/gpu": GPU,
    "alpha.kubernetes.io/nvidia-gpu": GPU,
    "nvidia.com/gpu-shared": SHARED_GPU,
    "nvidia.com/shared-gpu": SHARED_GPU,
    "amd.com/gpus": "amd.com/gpu",
    "amd/gpu": "amd.com/gpu",
    "intel.com/gpu": "gpu.intel.com/i915",
    "habana.com/gaudi": "habana.ai/gaudi",
}
"""Common misspellings of device names, each with the right name. The API server accepts them, but no node
offers such a resource."""

SHARE_PREFIX = "gpu-"
"""Prefix of the planner's own resource for a GPU share that KAI's annotations request: `gpu-fraction/0.5`."""

CLAIMED_GPU = "gpu.nvidia.com"
"""The planner's own resource for a whole GPU that a device claim requests (planner.devices)."""

WHOLE_GPUS = (*GPU_RESOURCES, CLAIMED_GPU)
"""The resources that are whole GPUs, from device plugins or by device claims."""

CLAIMED_MIG = "mig.nvidia.com"
"""The planner's own resource for a claimed MIG device of any profile; with `/PROFILE` appended, of one."""

PART_PREFIXES = (SHARED_GPU, MIG_PREFIX, SHARE_PREFIX, CLAIMED_MIG)
"""Prefixes of the resources that are parts of GPUs."""

PRESENT_LABEL = "nvidia.com/gpu.present"

PRODUCT_LABEL = "nvidia.com/gpu.product"
"""The GPU product (`NVIDIA-H100-80GB-HBM3`); `-MIG-…` or `-SHARED` follows it if GPUs are divided."""

FAMILY_LABEL = "nvidia.com/gpu.family"

COUNT_LABEL = "nvidia.com/gpu.count"
"""The number of a node's GPUs, as GPU feature discovery counts them."""

SHARING_LABEL = "nvidia.com/gpu.sharing-strategy"

MIG_STRATEGY_LABEL = "nvidia.com/mig.strategy"

MIG_CONFIG_LABEL = "nvidia.com/mig.config"

MIG_STATE_LABEL = "nvidia.com/mig.config.state"
"""The state of the MIG manager's reconfiguration to `MIG_CONFIG_LABEL`: `success`, `pending`."""

NVSWITCH_LABEL = "nvidia.com/nvswitch.present"

MEMORY_LABEL = "nvidia.com/gpu.memory"
"""The memory of one GPU in MiB; like most labels here, written by GPU feature discovery."""

CLIQUE_LABEL = "nvidia.com/gpu.clique"
"""The multi-node NVLink partition that a node is in."""

INTERCONNECT_LABEL = "gpu.topology/interconnect"
"""How a node's GPUs are connected (`NVLink`, `PCIe`); set by an administrator or a tool, if at all."""

NVLINK_VERSION_LABEL = "nvidia.com/nvlink.version"
"""The generation of NVLink as a number: "4"."""


Resources = Mapping[str, int]
"""Amounts by resource name: `cpu` in millicores, `memory` and storage in bytes, devices as a count."""
