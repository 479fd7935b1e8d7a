"""Excludes long-lived objects from Python's cycle collector.

A full collection visits every object, and no decision runs meanwhile. After a thousand decisions, a
collection takes a third of a second, and longer after each further decision. Snapshots and cached plans have
no reference cycles and are freed by reference counting, so a collection finds nothing in them.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping


def freeze_survivors() -> None:
    """Freezes all existing objects, and after each later full collection those that survived it.

    A frozen object is not visited by the collector again (`gc.freeze`).
    """
    gc.freeze()
    if _freeze_after_collection not in gc.callbacks:
        gc.callbacks.append(_freeze_after_collection)


def _freeze_after_collection(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
