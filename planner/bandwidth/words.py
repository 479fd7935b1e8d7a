"""Describes the bandwidth of a gang's placement in a sentence, compared with a topology-blind placement.

All figures are estimates of one model, which the sentence names (`planner.bandwidth.model`).
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.bandwidth.comparison import BandwidthComparison, GangLayout, compare_with_blind, placed
from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup


def sentence(value: BandwidthComparison) -> str:
    """Returns a sentence with the all-reduce times of a placement and of the topology-blind one."""
    words = f"All-reduce of 1 GB: {milliseconds(value.placement)}, topology-blind {_baseline_words(value)}"
    return f"{words}, by the model: {value.placement.estimate.model}."


def _baseline_words(value: BandwidthComparison) -> str:
    if value.baseline is None:
        return f"room for only {value.baseline_pods} pods"
    times = ratio(value.baseline, value.placement)
    return milliseconds(value.baseline) + (f" ({times})" if times else "")


def milliseconds(layout: GangLayout) -> str:
    """Returns the time of an all-reduce in this layout, with its unit."""
    return f"{layout.estimate.seconds * 1000:.3g} ms"


def ratio(layout: GangLayout, other: GangLayout) -> str:
    """Returns how many times as long an all-reduce takes in one layout as in the other; "" if equal."""
    times = layout.estimate.seconds / other.estimate.seconds
    return f"{times:.2f}×" if abs(times - 1) >= 0.005 else ""


def place_worth(snapshot: Snapshot, group: PodGroup, answer: Answer) -> BandwidthComparison | None:
    """Returns the comparison for a gang's placement; None if it has none (`compare_with_blind`), or one pod.

    For an elastic gang, only the pods that were placed count.
    """
    return compare_with_blind(snapshot, placed(group, answer), answer) if group.size > 1 else None


def properties_of(value: BandwidthComparison) -> Mapping[str, str]:
    """Returns the comparison as strings for other programs: times in milliseconds, and the model's name."""
    values = {"allReduceMs": f"{value.placement.estimate.seconds * 1000:.3f}"}
    if value.baseline is not None:
        values["allReduceMsTopologyBlind"] = f"{value.baseline.estimate.seconds * 1000:.3f}"
    return values | {"allReduceModel": value.placement.estimate.model}
