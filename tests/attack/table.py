"""A row of the table of attacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """What was attacked, the bound, what was measured, and whether it holds."""

    attack: str
    bound: str
    measured: str
    holds: bool

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'FAILS':6} {self.attack:36} {self.bound:44} {self.measured}"


HEAD = f"{'':6} {'attack':36} {'bound':44} measured"


def p99(seconds: Sequence[float]) -> float:
    """The 99th percentile; without any, for ever."""
    return sorted(seconds)[int(0.99 * len(seconds))] if seconds else float("inf")
