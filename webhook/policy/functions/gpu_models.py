"""CEL functions over models of GPUs: which of a cluster's products suits a role best, by NVIDIA's data
sheets.

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
    """A model of GPU. `words`: the words, in capitals, that identify it in a product label. `bandwidth`: of
    its memory, in GB/s. `compute`: dense TFLOPS of its tensor cores in BF16 (FP16 if it has no BF16).
    """

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
"""The model of a label is the first row whose words it all contains, so a row with more words comes before a
row with fewer of them.
"""


def strongest(products: Json, strength: Json) -> list[str]:
    """`gpus.strongest(products, "bandwidth")`: the products with the highest memory bandwidth (or "compute");
    [] if all known products have the same, or none is known. MIG products are ignored.
    """
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
