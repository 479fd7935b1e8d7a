"""Describes the bandwidth of a gang's place in a sentence, compared with a topology-blind or a better one.
Pure.

All figures come from one model, which the sentence names (`planner.bandwidth`).
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.bandwidth.comparison import GangLayout, PodDistribution, Worth, placed, spread, worth
from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.topology import short

_NOTICED = 1.05
"""The slowdown of an all-reduce from which a warning is given."""


def sentence(value: Worth) -> str:
    """Returns the time of an all-reduce, compared with a topology-blind placement."""
    words = f"All-reduce of 1 GB: {milliseconds(value.placement)}, topology-blind {_baseline_words(value)}"
    return f"{words}, by the model: {value.placement.estimate.model}."


def _baseline_words(value: Worth) -> str:
    if value.baseline is None:
        return f"room for only {value.baseline_pods} pods"
    times = ratio(value.baseline, value.placement)
    return milliseconds(value.baseline) + (f" ({times})" if times else "")


def milliseconds(layout: GangLayout) -> str:
    """Returns the time of an all-reduce in this layout."""
    return f"{layout.estimate.seconds * 1000:.3g} ms"


def ratio(layout: GangLayout, other: GangLayout) -> str:
    """Returns how many times as long an all-reduce takes in one layout as in the other; "" if equal."""
    times = layout.estimate.seconds / other.estimate.seconds
    return f"{times:.2f}×" if abs(times - 1) >= 0.005 else ""


def place_worth(snapshot: Snapshot, group: PodGroup, answer: Answer) -> Worth | None:
    """Returns the comparison for a gang's place; None if there is none. An elastic gang counts with the pods
    that it got.
    """
    return worth(snapshot, placed(group, answer), answer) if group.size > 1 else None


def properties_of(value: Worth) -> Mapping[str, str]:
    """Returns the same as strings for machines: milliseconds, and the model."""
    values = {"allReduceMs": f"{value.placement.estimate.seconds * 1000:.3f}"}
    if value.baseline is not None:
        values["allReduceMsTopologyBlind"] = f"{value.baseline.estimate.seconds * 1000:.3f}"
    return values | {"allReduceModel": value.placement.estimate.model}


def bandwidth_warning(snapshot: Snapshot, group: PodGroup, answer: Answer) -> str:
    """Returns the warning for a gang that is spread although it prefers one domain, if that costs time.

    It says how much, and what would be better. "" if the place is as good as any, or was promised before.
    `snapshot` is the cluster in which the gang was planned.
    """
    if answer.decision != "admitted" or answer.replayed:
        return ""
    distribution = spread(snapshot, group, answer)
    if (
        distribution is None
        or distribution.placement.estimate.seconds < _NOTICED * distribution.best.estimate.seconds
    ):
        return ""
    return _costs(group.name, distribution)


def _costs(name: str, distribution: PodDistribution) -> str:
    level = short(distribution.level)
    where = f"one {level}" if distribution.min_domains == 1 else f"{distribution.min_domains} {level}s"
    better = "require it, and wait" if distribution.min_domains == 1 else "wait until others have ended"
    return (
        f"{name}: in {distribution.domains} {level}s, for {where} has no room now. All-reduce of 1 GB: "
        f"{milliseconds(distribution.placement)}, in {where} {milliseconds(distribution.best)} "
        f"({ratio(distribution.placement, distribution.best)}), by the model: "
        f"{distribution.placement.estimate.model}. "
        f"Better: {better}."
    )
