"""Excludes objects that live as long as the process from Python's cycle collector.

A full collection visits every object and stops decisions meanwhile: a third of a second after a thousand
decisions, longer with each. Snapshots and cached plans have no cycles and are freed by reference counting, so
visiting them again finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping


def look_at_the_young_alone() -> None:
    """Freezes all objects that exist now, and those that survive a full collection from now on."""
    gc.freeze()
    if _outlived not in gc.callbacks:
        gc.callbacks.append(_outlived)


def _outlived(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
