"""What makes of one sequence a later one: for long lists of which little changes between two calls. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SequenceDelta:
    """The first `prefix` items stay, the last `suffix` items too; `middle` stands between them now."""

    prefix: int
    middle: tuple[Any, ...]
    suffix: int


def sequence_delta(former: Sequence[Any], latest: Sequence[Any]) -> SequenceDelta:
    """What differs by identity: a record that did not change is the same object."""
    common = min(len(former), len(latest))
    prefix = next((n for n in range(common) if former[n] is not latest[n]), common)
    common -= prefix
    suffix = next((n for n in range(common) if former[-1 - n] is not latest[-1 - n]), common)
    return SequenceDelta(prefix, tuple(latest[prefix : len(latest) - suffix]), suffix)


def sequence_after(former: Sequence[Any], delta: SequenceDelta) -> tuple[Any, ...]:
    """The later sequence."""
    return (*former[: delta.prefix], *delta.middle, *former[len(former) - delta.suffix :])
