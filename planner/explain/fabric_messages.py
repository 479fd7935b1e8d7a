"""Messages about the hard leaf-spine rules: link speed and limits per leaf."""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.podgroup import PodGroup
from planner.model.settings import SchedulerSettings
from planner.model.words import pods


def too_slow(gang: PodGroup, fastest: float, ways: Sequence[str]) -> str:
    """Returns the message that no leaf switch has links of the requested speed.

    `fastest`: the speed of the fastest links, in Gb/s. `ways`: texts of what would work.
    """
    return (
        f"It asks for links of {gang.fabric.gbps:g} Gb/s between its nodes, "
        f"and no leaf has one; the fastest has {fastest:g}. "
        f"Would work: {ways[0] if ways else 'slower links for fewer pods'}."
    )


def over_limits(
    gang: PodGroup, settings: SchedulerSettings, room: int, ways: Sequence[str], *, could: bool
) -> str:
    """Returns the message that the leaf switches have room for only `room` pods.

    `ways`: texts of what would work. `could`: the gang fits the empty cluster.
    """
    when = "fit the empty cluster but not now" if could else "do not fit the empty cluster"
    wait = " As asked, it waits for other gangs to end." if could else ""
    limits = f"{settings.nodes_per_leaf} nodes and {settings.gpus_per_leaf} GPUs of a gang"
    return (
        f"{pods(gang.size)} within the limits of {limits} in one leaf "
        f"(topologyConstraints of topology-scheduler-config) {when}: the leaves have room for at most "
        f"{pods(room)} now. Would work{' now' if could else ''}: "
        f"{', or '.join([*ways, 'higher limits'])}.{wait}"
    )
