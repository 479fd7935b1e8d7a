"""Messages about the hard leaf-spine rules: the speed of links, the limits of a leaf."""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.podgroup import PodGroup
from planner.model.settings import SchedulerSettings
from planner.model.words import pods


def too_slow(gang: PodGroup, fastest: float, ways: Sequence[str]) -> str:
    """No leaf has links as fast as asked; `fastest`: gigabits a second that one has."""
    return (
        f"{gang.name} asks for links of {gang.fabric.gbps:g} Gb/s between its nodes, "
        f"and no leaf has one; the fastest has {fastest:g}. "
        f"Would work: {ways[0] if ways else 'slower links for fewer pods'}."
    )


def over_limits(
    gang: PodGroup, settings: SchedulerSettings, room: int, ways: Sequence[str], *, could: bool
) -> str:
    """All leaves together have room for no more pods than `room`; `could`: that may change."""
    when = "fit the empty cluster but not now" if could else "do not fit the empty cluster"
    limits = f"{settings.nodes_per_leaf} nodes and {settings.gpus_per_leaf} GPUs of a gang"
    return (
        f"{pods(gang.size)} within the limits of {limits} in one leaf "
        f"(topologyConstraints of topology-scheduler-config) {when}: the leaves have room for at most "
        f"{pods(room)} now. Would work{' now' if could else ''}: "
        f"{', or '.join([*ways, 'higher limits', *(['the end of other gangs'] if could else [])])}."
    )
