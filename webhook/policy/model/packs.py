"""Policy packs: presets that make the shipped policies write for one scheduling system, by the parameter
`pack`. Pure.

A pack sets some parameters of policies. They take precedence over the parameter file beside the policies,
which contains all defaults. The ConfigMap of the administrator in the cluster takes precedence over the pack.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from planner.model.pod import DEFAULT_SCHEDULER
from planner.model.schedulers import KAI, KUEUE, RUNAI

PACK = "pack"
"""The name of the parameter that selects a pack."""


AUTO = "auto"
"""The default pack: policies write for every scheduling system that the cluster has."""


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
"""The parameters that each pack sets; others have their defaults."""


SYSTEM_OF: Mapping[str, str] = {"kai": KAI, "kueue": KUEUE, "runai": RUNAI}
"""The scheduling system of each pack that is for a single one, named as in `SchedulersSeen.shown`."""


def fitting(systems: Collection[str]) -> str:
    """Returns the pack that fits a cluster with these scheduling systems: the pack of the only system that
    has one, `plain` if none has one, `auto` if several do; the administrator may then choose a pack.
    """
    packs = [pack for pack, system in SYSTEM_OF.items() if system in systems]
    return packs[0] if len(packs) == 1 else AUTO if packs else "plain"
