"""What a gang's place is worth, in a sentence: compared with a topology-blind one, or a better one. Pure.

All figures come from one model, whose name is in the sentence (`planner.bandwidth`).
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.bandwidth.comparison import GangLayout, PodDistribution, Worth, placed, spread, worth
from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.topology import short

_NOTICED = 1.05
"""How many times as long an all-reduce takes before it is worth a warning."""


def sentence(value: Worth) -> str:
    """The time of an all-reduce, beside that of a topology-blind placement."""
    words = f"All-reduce of 1 GB: {milliseconds(value.placement)}, topology-blind {_baseline_words(value)}"
    return f"{words}, by the model: {value.placement.estimate.model}."


def _baseline_words(value: Worth) -> str:
    if value.baseline is None:
        return f"room for only {value.baseline_pods} pods"
    times = ratio(value.baseline, value.placement)
    return milliseconds(value.baseline) + (f" ({times})" if times else "")


def milliseconds(layout: GangLayout) -> str:
    """The time of an all-reduce there."""
    return f"{layout.estimate.seconds * 1000:.3g} ms"


def ratio(layout: GangLayout, other: GangLayout) -> str:
    """How many times as long an all-reduce takes in one layout as in the other; "" for as long."""
    times = layout.estimate.seconds / other.estimate.seconds
    return f"{times:.2f}×" if abs(times - 1) >= 0.005 else ""


def place_worth(snapshot: Snapshot, group: PodGroup, answer: Answer) -> Worth | None:
    """The worth of a gang's place; None where there is none to speak of. An elastic gang is taken with the
    pods that it got."""
    return worth(snapshot, placed(group, answer), answer) if group.size > 1 else None


def properties_of(value: Worth) -> Mapping[str, str]:
    """The same for machines, as strings: milliseconds, and the model."""
    values = {"allReduceMs": f"{value.placement.estimate.seconds * 1000:.3f}"}
    if value.baseline is not None:
        values["allReduceMsTopologyBlind"] = f"{value.baseline.estimate.seconds * 1000:.3f}"
    return values | {"allReduceModel": value.placement.estimate.model}


def bandwidth_warning(snapshot: Snapshot, group: PodGroup, answer: Answer) -> str:
    """The warning to a gang that is spread, though it prefers one domain, where that costs time: how much,
    and what would be better. "" where the place is as good as any, or was promised before.

    `snapshot` is the cluster in which it was planned.
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
