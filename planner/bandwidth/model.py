"""The cost model of a placement: the time of an all-reduce.

The model is the hierarchical ring all-reduce of S bytes over g GPUs in each of m NVLink domains: T =
2S(g−1)/(g·B_in) + 2(S/g)(m−1)/(m·B_out) + latency, with B in bytes per second per GPU, one way. A placement
without a shared NVLink domain (g = 1) is a flat ring on the network: 2S(m−1)/(m·B_out). Rates are nominal;
latencies are NCCL's for its Simple protocol. The result is an estimate, and every answer names the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MODEL = "hierarchical ring all-reduce, nominal link rates"


GB = 10**9


NVLINK = {"ampere": 300.0, "hopper": 450.0, "blackwell": 900.0}
"""GB/s per GPU, one way, by GPU family (NVLink 3, 4, 5)."""


PCIE = {4: 32.0, 5: 64.0}
"""GB/s per GPU, one way, by PCIe generation of a ×16 slot: the rate between GPUs of a host without NVLink."""


NETWORK = {"hdr": 25.0, "ndr": 50.0, "xdr": 100.0}
"""GB/s per adapter, one way, by InfiniBand generation. The model assumes one adapter for each GPU."""


_BASE, _NVLINK_HOP, _NETWORK_HOP = 8.4e-6, 3.4e-6, 14e-6
"""Latencies in seconds: of an all-reduce, and of each of its hops over NVLink and over the network."""


@dataclass(frozen=True, slots=True)
class Links:
    """Rates in GB/s per GPU, one way. `inside`: between GPUs of one NVLink domain. `across`: by the network,
    before it is divided by `oversubscription` (1 is non-blocking).
    """

    inside: float = NVLINK["hopper"]
    across: float = NETWORK["ndr"]
    oversubscription: float = 1.0

    @property
    def effective_across(self) -> float:
        """The network rate after oversubscription, in GB/s."""
        return self.across / self.oversubscription


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds for one all-reduce, its bus bandwidth in GB/s, and the name of the model."""

    seconds: float
    bus_bandwidth: float
    model: str = MODEL


def all_reduce(gpus_by_domain: Sequence[int], size: float = GB, links: Links | None = None) -> Estimate:
    """Returns the estimate for `size` bytes over NVLink domains with these numbers of GPUs.

    With unequal domains, the smallest limits the network phase: each of its GPUs carries the largest share.
    Raises `ValueError` for no GPU, a negative number of GPUs, or a size below zero.
    """
    domains = [gpus for gpus in gpus_by_domain if gpus]
    if not domains or min(domains) < 0 or size < 0:
        raise ValueError("an all-reduce needs at least one GPU, and a size of zero or more")
    links = links or Links()
    total, smallest, count = sum(domains), min(domains), len(domains)
    if total == 1:
        return Estimate(0.0, 0.0)
    inside = max(2 * size * (gpus - 1) / (gpus * links.inside * GB) for gpus in domains)
    across = 2 * (size / smallest) * (count - 1) / (count * links.effective_across * GB)
    hops = 2 * (max(domains) - 1) * _NVLINK_HOP + 2 * (count - 1) * _NETWORK_HOP
    seconds = inside + across + _BASE + hops
    return Estimate(seconds, size / seconds * 2 * (total - 1) / total / GB)
