"""Functions of policies over models of GPUs: which of a cluster's products suit a role, by data sheet.

A product is named as in the label `nvidia.com/gpu.product` ("NVIDIA-H100-80GB-HBM3").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.cel import Function

Json = Any


@dataclass(frozen=True, slots=True)
class GpuModel:
    """`words`: those that its product label has, in capitals. `bandwidth`: of its memory, GB/s. `compute`:
    TFLOPS of its tensor cores in BF16 (FP16 where it has none), dense."""

    words: frozenset[str]
    bandwidth: int
    compute: int


def _model(words: str, bandwidth: int, compute: int) -> GpuModel:
    return GpuModel(frozenset(words.split()), bandwidth, compute)


MODELS = (
    _model("GB300", 8000, 2500),
    _model("GB200", 8000, 2500),
    _model("B300", 8000, 2250),
    _model("B200", 8000, 2250),
    _model("H200 NVL", 4800, 835),
    _model("H200", 4800, 989),
    _model("H100 NVL", 3900, 835),
    _model("H100 PCIE", 2000, 756),
    _model("H100", 3350, 989),
    _model("H20", 4000, 148),
    _model("A100 40GB", 1555, 312),
    _model("A100", 2039, 312),
    _model("A40", 696, 150),
    _model("A30", 933, 165),
    _model("A10", 600, 125),
    _model("L40S", 864, 362),
    _model("L40", 864, 181),
    _model("L4", 300, 121),
    _model("V100", 900, 125),
    _model("T4", 320, 65),
)
"""The first row of which a label has all words counts: the more words, the earlier."""


def strongest(products: Json, strength: Json) -> list[str]:
    """`gpus.strongest(products, "bandwidth")`: those of the products that have the most of it, or of
    "compute"; [] where all are alike, or none is known. MIG slices are left out."""
    names = [str(product) for product in products] if isinstance(products, list) else []
    figures = {name: figure for name in names if (figure := _figure(name, str(strength)))}
    if len(set(figures.values())) < 2:
        return []
    highest = max(figures.values())
    return sorted(name for name, figure in figures.items() if figure == highest)


def _figure(product: str, strength: str) -> int:
    words = set(re.split(r"[^A-Z0-9]+", product.upper()))
    model = next((model for model in MODELS if model.words <= words), None)
    if model is None or "MIG" in words or strength not in ("bandwidth", "compute"):
        return 0
    return model.bandwidth if strength == "bandwidth" else model.compute


GPU_MODEL_FUNCTIONS: Mapping[str, Function] = {"gpus.strongest": Function(strongest, 2, 2)}
"""Name in CEL → the function, the fewest and the most arguments."""
