"""Python's cycle collector, kept away from objects that live as long as the process.

A full collection visits every object that there is and stops a decision meanwhile: for a third of a second
after a thousand decisions, longer with each. Snapshots and cached plans have no cycles and are freed by their
reference counts alone, so visiting them again and again finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping


def look_at_the_young_alone() -> None:
    """Look no more at what is alive now, nor at what outlives a full collection from now on."""
    gc.freeze()
    if _outlived not in gc.callbacks:
        gc.callbacks.append(_outlived)


def _outlived(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
