"""Names of GPU resources, and of the node labels that describe GPUs: every module reads them from here."""

from __future__ import annotations

from collections.abc import Mapping

GPU = "nvidia.com/gpu"
"""A GPU as NVIDIA's device plugin offers it; under MIG strategy single or time slicing, a part of one."""

SHARED_GPU = "nvidia.com/gpu.shared"
"""A time slice of a GPU, where the device plugin renames what it shares."""

GPU_RESOURCES = (GPU, "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")
"""Whole GPUs and accelerators, of every vendor whose device plugin we know."""

MIG_PREFIX = "nvidia.com/mig-"
"""Begins the resource of a MIG profile under strategy mixed: `nvidia.com/mig-1g.10gb`."""

DEVICE_NAMES, DEVICE_PREFIXES = (*GPU_RESOURCES, SHARED_GPU), (MIG_PREFIX,)
"""The resources by which containers ask for GPUs or parts of them: names, and how others begin."""

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
"""Common misspellings of device names. The API server accepts them as resources that no node offers."""

SHARE_PREFIX = "gpu-"
"""Begins what the planner calls a part of a GPU that KAI's annotations ask for: `gpu-fraction/0.5`."""

CLAIMED_GPU = "gpu.nvidia.com"
"""What the planner calls a whole GPU that is asked for by a device claim (`planner.devices`)."""

WHOLE_GPUS = (*GPU_RESOURCES, CLAIMED_GPU)
"""Whole GPUs, whether a device plugin offers them or a device claim asks for them."""

CLAIMED_MIG = "mig.nvidia.com"
"""What the planner calls a claimed MIG device of any profile; a `/` and the profile's name may follow."""

PART_PREFIXES = (SHARED_GPU, MIG_PREFIX, SHARE_PREFIX, CLAIMED_MIG)
"""Prefixes of the resources that are parts of GPUs."""

PRESENT_LABEL = "nvidia.com/gpu.present"

PRODUCT_LABEL = "nvidia.com/gpu.product"

FAMILY_LABEL = "nvidia.com/gpu.family"

COUNT_LABEL = "nvidia.com/gpu.count"

SHARING_LABEL = "nvidia.com/gpu.sharing-strategy"

MIG_STRATEGY_LABEL = "nvidia.com/mig.strategy"

MIG_CONFIG_LABEL = "nvidia.com/mig.config"

MIG_STATE_LABEL = "nvidia.com/mig.config.state"
"""Whether the MIG manager has made that split: `success`, `pending`."""

NVSWITCH_LABEL = "nvidia.com/nvswitch.present"

MEMORY_LABEL = "nvidia.com/gpu.memory"
"""Memory of one GPU in MiB, written by GPU feature discovery as the other labels here."""

CLIQUE_LABEL = "nvidia.com/gpu.clique"
"""The multi-node NVLink partition that a node is in."""

INTERCONNECT_LABEL = "gpu.topology/interconnect"
"""How a node's GPUs are linked (`NVLink`, `PCIe`), where a person or a tool writes it."""

NVLINK_VERSION_LABEL = "nvidia.com/nvlink.version"
"""The generation of NVLink as its number: "4"."""


Resources = Mapping[str, int]
"""Amounts by resource name: `cpu` in millicores, `memory` and the like in bytes, devices in pieces."""
