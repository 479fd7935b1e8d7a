"""The difference between two long lists of which little changes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SequenceDelta:
    """The first `prefix` and the last `suffix` items stay; `middle` replaces those between them."""

    prefix: int
    middle: tuple[Any, ...]
    suffix: int


def sequence_delta(former: Sequence[Any], latest: Sequence[Any]) -> SequenceDelta:
    """Compares by identity: an unchanged record is the same object."""
    common = min(len(former), len(latest))
    prefix = next((n for n in range(common) if former[n] is not latest[n]), common)
    common -= prefix
    suffix = next((n for n in range(common) if former[-1 - n] is not latest[-1 - n]), common)
    return SequenceDelta(prefix, tuple(latest[prefix : len(latest) - suffix]), suffix)


def sequence_after(former: Sequence[Any], delta: SequenceDelta) -> tuple[Any, ...]:
    """Returns the later sequence."""
    return (*former[: delta.prefix], *delta.middle, *former[len(former) - delta.suffix :])
