"""Finds the nodes on which other pods use what a gang has reserved, so that its own pods cannot start. Pure.

Pods of namespaces that are not enforced, and pods that opted out, are not planned around reservations. Taints
keep them away only from domains that are held whole, and only if that is chosen. A pod of another gang may be
pinned to a node that its gang has left.
"""

from __future__ import annotations

from collections.abc import Collection

from planner.cluster.snapshot import Snapshot
from planner.cluster.usage.occupancy import carried
from planner.model.quantity import show
from planner.model.reservation import Reservation
from planner.model.words import listed
from webhook.kube.controller.replanning.replan import empty_seats, seat_amounts, unusable
from webhook.kube.state.gangs import Unbound

MOST_NAMED = 3
"""Maximum number of pods that a reason names."""


def taken_nodes(snapshot: Snapshot, held: Reservation, left: Collection[Unbound]) -> dict[str, str]:
    """Returns the nodes with seats that no pod of the gang can use, because pods without a reservation there
    use the same amounts, each with a short reason; none while its other free seats are enough for its pods.

    `left`: the gang's pods that its scheduler has left unbound for long.
    """
    free = empty_seats(snapshot, held)
    amounts = seat_amounts(held)
    result = {name: why for name in free if (why := _taken(snapshot, name, list(amounts[name])))}
    usable = sum(count for name, count in free.items() if name not in result)
    return result if len(left) > usable else {}


def _taken(snapshot: Snapshot, name: str, resources: Collection[str]) -> str:
    """Returns why there is no room for what is reserved on a node; "" if there is room, or each pod there has
    a reservation of that node.
    """
    node, taken = snapshot.nodes.get(name), snapshot.taken_on(name)
    if node is None or unusable(snapshot, name, {}):  # the gang leaves such a node for that reason
        return ""
    holder_ids = {held.id for held, _ in snapshot.holds.on(name)}
    for resource in resources:
        offered = node.allocatable.get(resource, 0) + node.pending.get(resource, 0)
        if taken.get(resource, 0) <= offered:
            continue
        others = [
            pod
            for pod in snapshot.bound.on(name)
            if pod.requests.get(resource) and holder_ids.isdisjoint(carried(pod))
        ]
        if others:
            amount = sum(pod.requests[resource] for pod in others)
            use = f"{show(resource, amount)} of {show(resource, offered)} {resource}"
            verb = "uses" if len(others) == 1 else "use"
            pods = listed(sorted(pod.name for pod in others), MOST_NAMED)
            return f"{pods} {verb} {use} without a reservation there"
    return ""
