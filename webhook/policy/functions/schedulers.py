"""Functions of policies over scheduling systems: which are there, which queues they have. Plain JSON.

Without a cluster every system is assumed to be there. The parameter `schedulers.present` names systems that
are taken to be there, with all of their queues, whatever the cluster shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.model.schedulers import KAI, KUEUE
from webhook.cel import Function
from webhook.workloads.keys.topology_keys import (
    KAI_PREFERRED,
    KAI_REQUIRED,
    KAI_TOPOLOGY,
    PREFERRED_LEVEL,
    REQUIRED_LEVEL,
)

Json = Any


PRESENT = "schedulers.present"


def present(cluster: Json, params: Json, name: Json) -> bool:
    """`schedulers.present(cluster, params, name)`: whether a scheduler of this name is there.

    `name`: a schedulerName, or "kueue".
    """
    return not cluster["known"] or name in _forced(params) or name in cluster["schedulers"]


def has_queue(cluster: Json, params: Json, name: Json, queue: Json) -> bool:
    """`schedulers.hasQueue(cluster, params, name, queue)`: whether a system has a queue of this name.

    Kueue's are called NAMESPACE/NAME. True too where nothing is known of a system's queues: cluster files
    hold none where nobody asked for them.
    """
    queues = cluster["queues"].get(name)
    return queues is None or name in _forced(params) or queue in queues


def topology_for(cluster: Json, name: Json, planned: Json) -> str:
    """`schedulers.topology(cluster, name, plan.topology)`: the Topology of a system's own that has the levels
    of the one that was planned in; "" where it has none, or several of which none has its name.
    """
    levels = cluster["topologies"].get(planned)
    alike = [
        own for own, followed_levels in cluster["followed"].get(name, {}).items() if followed_levels == levels
    ]
    if planned in alike:
        return str(planned)
    return str(alike[0]) if len(alike) == 1 else ""


def follows(cluster: Json, name: Json, level: Json) -> bool:
    """`schedulers.follows(cluster, name, level)`: whether a Topology that a system follows has this level.

    True too where nothing is known of its Topology objects.
    """
    followed = cluster["followed"].get(name)
    return followed is None or any(level in levels for levels in followed.values())


def queue_follows(cluster: Json, queue: Json, level: Json) -> bool:
    """`kueue.follows(cluster, queue, level)`: whether a flavor of a LocalQueue, NAMESPACE/NAME, has a level.

    Where the flavors of the queue are not known, whether any Topology that Kueue follows has it.
    """
    names = cluster["queueTopologies"].get(queue)
    if names is None:
        return follows(cluster, KUEUE, level)
    followed = cluster["followed"].get(KUEUE, {})
    return any(level in followed.get(name, ()) for name in names)


def wish(cluster: Json, params: Json, topology: Json, required: Json, preferred: Json) -> dict[str, str]:
    """`schedulers.wish(cluster, params, topology, required, preferred)`: annotations that wish for levels.

    In KAI's words, where KAI is there and has that topology, else in ours. "" is no wish.
    """
    own = topology_for(cluster, KAI, topology) if present(cluster, params, KAI) else ""
    words = {REQUIRED_LEVEL: required, PREFERRED_LEVEL: preferred}
    if own:
        words = {KAI_TOPOLOGY: own, KAI_REQUIRED: required, KAI_PREFERRED: preferred}
    return {key: str(level) for key, level in words.items() if level}


def _forced(params: Json) -> set[str]:
    data = params.get("data") if isinstance(params, Mapping) else None
    names = str(data.get(PRESENT, "")) if isinstance(data, Mapping) else ""
    return {name.strip() for name in names.split(",") if name.strip()}


SCHEDULER_FUNCTIONS: Mapping[str, Function] = {
    "schedulers.present": Function(present, 3, 3),
    "schedulers.hasQueue": Function(has_queue, 4, 4),
    "schedulers.topology": Function(topology_for, 3, 3),
    "schedulers.follows": Function(follows, 3, 3),
    "kueue.follows": Function(queue_follows, 3, 3),
    "schedulers.wish": Function(wish, 5, 5),
}
"""Name in CEL → the function, the fewest and the most arguments."""
