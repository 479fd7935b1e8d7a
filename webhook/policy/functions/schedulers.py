"""CEL functions over scheduling systems: which ones the cluster has, with which queues. Plain JSON.

Without a cluster, every system is assumed to be installed. The parameter `schedulers.present` names systems
that are assumed to be installed with any queue, whatever the cluster shows.
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
    """`schedulers.present(cluster, params, name)`: whether the cluster has a scheduler of this name.

    `name`: a schedulerName, or "kueue".
    """
    return not cluster["known"] or name in _forced(params) or name in cluster["schedulers"]


def has_queue(cluster: Json, params: Json, name: Json, queue: Json) -> bool:
    """`schedulers.hasQueue(cluster, params, name, queue)`: whether a system has a queue of this name; true if
    its queues are not known.

    Kueue's queues are named NAMESPACE/NAME. Cluster files may contain no queues, if the user did not save
    them.
    """
    queues = cluster["queues"].get(name)
    return queues is None or name in _forced(params) or queue in queues


def topology_for(cluster: Json, name: Json, planned: Json) -> str:
    """`schedulers.topology(cluster, name, plan.topology)`: the name of the system's own Topology with the
    same levels as the plan's; "" if it has none, or several and none with the same name.
    """
    levels = cluster["topologies"].get(planned)
    alike = [
        own for own, followed_levels in cluster["followed"].get(name, {}).items() if followed_levels == levels
    ]
    if planned in alike:
        return str(planned)
    return str(alike[0]) if len(alike) == 1 else ""


def follows(cluster: Json, name: Json, level: Json) -> bool:
    """`schedulers.follows(cluster, name, level)`: whether a Topology that the system reads has this level;
    true if its Topologies are not known.
    """
    followed = cluster["followed"].get(name)
    return followed is None or any(level in levels for levels in followed.values())


def queue_follows(cluster: Json, queue: Json, level: Json) -> bool:
    """`kueue.follows(cluster, queue, level)`: whether a flavor of the LocalQueue (NAMESPACE/NAME) has a
    Topology with this level.

    If the queue's flavors are not known: whether any Topology that Kueue reads has the level.
    """
    names = cluster["queueTopologies"].get(queue)
    if names is None:
        return follows(cluster, KUEUE, level)
    followed = cluster["followed"].get(KUEUE, {})
    return any(level in followed.get(name, ()) for name in names)


def wish(cluster: Json, params: Json, topology: Json, required: Json, preferred: Json) -> dict[str, str]:
    """`schedulers.wish(cluster, params, topology, required, preferred)`: the annotations that request these
    levels ("" for no request).

    KAI's annotations if the cluster has KAI and KAI has that topology, else Bayplan's.
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
