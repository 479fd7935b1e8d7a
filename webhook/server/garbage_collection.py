"""The collector of cycles, kept from what lives long.

A full collection looks at every object that there is, and stops a decision meanwhile: for a third of a second
after a thousand decisions, longer with each. What the picture of the cluster and the plans remember has no
cycles and is freed by its counts of references alone, so it need not be looked at again and again.
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
