"""Policy packs: for which scheduling system the shipped policies write, by the one parameter `pack`. Pure.

A pack is a few parameters of policies. They count before the file beside the policies, which spells every
default out, and after the cluster's ConfigMap, where an administrator says what is to differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from planner.model.pod import DEFAULT_SCHEDULER
from planner.model.schedulers import KAI, KUEUE, RUNAI

PACK = "pack"
"""The parameter."""


AUTO = "auto"
"""Policies write for every system that the cluster shows."""


_OFF = "false"


_NO_KAI = {
    "kai-topology.enabled": _OFF,
    "kai-requests.enabled": _OFF,
    "scheduler-name.name": DEFAULT_SCHEDULER,
}


PACKS: Mapping[str, Mapping[str, str]] = {
    AUTO: {},
    "kai": {"kueue-topology.enabled": _OFF, "runai-defaults.enabled": _OFF},
    "kueue": {**_NO_KAI, "runai-defaults.enabled": _OFF},
    "runai": {
        "kai-topology.enabled": _OFF,
        "kueue-topology.enabled": _OFF,
        "scheduler-name.name": RUNAI,
    },
    "plain": {**_NO_KAI, "kueue-topology.enabled": _OFF, "runai-defaults.enabled": _OFF},
}
"""What each pack sets; what it does not name is as without it."""


SYSTEM_OF: Mapping[str, str] = {"kai": KAI, "kueue": KUEUE, "runai": RUNAI}
"""The system that a pack is for, as `SchedulersSeen` calls it."""


def fitting(systems: Collection[str]) -> str:
    """The pack that fits a cluster which shows these systems: the only one there, `plain` for none, and
    `auto` where there are several, of which somebody may choose."""
    packs = [pack for pack, system in SYSTEM_OF.items() if system in systems]
    return packs[0] if len(packs) == 1 else AUTO if packs else "plain"
