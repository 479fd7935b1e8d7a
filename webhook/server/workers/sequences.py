"""Computes and applies the difference between two versions of a long list. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SequenceDelta:
    """A difference: the first `prefix` and the last `suffix` items are unchanged; `middle` replaces those
    between.
    """

    prefix: int
    middle: tuple[Any, ...]
    suffix: int


def sequence_delta(former: Sequence[Any], latest: Sequence[Any]) -> SequenceDelta:
    """Returns the difference from `former` to `latest`. Compares items by identity: an unchanged record is
    the same object in both.
    """
    common = min(len(former), len(latest))
    prefix = next((n for n in range(common) if former[n] is not latest[n]), common)
    common -= prefix
    suffix = next((n for n in range(common) if former[-1 - n] is not latest[-1 - n]), common)
    return SequenceDelta(prefix, tuple(latest[prefix : len(latest) - suffix]), suffix)


def sequence_after(former: Sequence[Any], delta: SequenceDelta) -> tuple[Any, ...]:
    """Returns the sequence that results from applying the difference to `former`."""
    return (*former[: delta.prefix], *delta.middle, *former[len(former) - delta.suffix :])
