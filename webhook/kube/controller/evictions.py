"""Lets in gangs for which their scheduler evicts others, once what others hold leaves enough nodes for them.

Admission puts the pods of such a gang at Bayplan's gate if other gangs hold whole nodes and have not started
(`webhook.placement.schedulers.evictions`): each pod alone does not show how many nodes its gang needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.labels import Term
from planner.model.natural_order import natural
from planner.model.reservation import Reservation
from planner.model.words import listed
from webhook.kube.state.gangs import Unbound
from webhook.kube.state.gathering import Gang
from webhook.placement.schedulers.evictions import (
    fits_beside_unstarted,
    off_unstarted,
    open_reservations,
    unstarted,
)

GATHER_SECONDS = 5.0
"""Seconds since the newest pod of a gang was created, after which no further pods are waited for: of a gang
that runs, only a pod that is tried again is at the gate. Controllers create the pods of a gang in less."""


MOST_NAMED = 3
"""Maximum number of gangs that an event names."""


@dataclass(frozen=True, slots=True)
class LetInForEvictions:
    """Remove the gate of the pods of a gang for which its scheduler evicts others.

    `excluded`: requirements that keep them off the nodes of gangs that are about to start. `tolerated`: the
    reservations whose taints they tolerate.
    """

    gang: Gang
    pods: tuple[Unbound, ...]
    excluded: Term
    tolerated: tuple[Reservation, ...]


@dataclass(frozen=True, slots=True)
class BehindUnstarted:
    """Report that a gang waits at the gate until these gangs have started or given up their places."""

    gang: Gang
    unstarted: tuple[str, ...]

    @property
    def answer(self) -> Answer:
        """Why the gang waits."""
        message = (
            "waits for gangs that hold whole nodes to start: the other nodes are too few for it, even if its "
            f"scheduler frees all of them. These gangs are {listed(self.unstarted, MOST_NAMED)}"
        )
        return Answer(self.gang.name, "queued", reason="OthersStart", message=message)


def evictions(
    snapshot: Snapshot, gangs: Iterable[Gang], now: float
) -> Iterator[LetInForEvictions | BehindUnstarted]:
    """Yields the action that is due for each of these gangs (`Gang.awaits_evictions`). Pure.

    All pods of a gang are let in together, so that they exclude the same nodes. `now`: seconds since the
    epoch.
    """
    for gang in gangs:
        gated = tuple(pod for pod in gang.pods if pod.gated)
        if len(gang.pods) < gang.group.size and now - max(pod.created for pod in gated) < GATHER_SECONDS:
            continue
        if fits_beside_unstarted(snapshot, gang.group):
            yield LetInForEvictions(gang, gated, off_unstarted(snapshot), open_reservations(snapshot))
        else:
            names = sorted(set(unstarted(snapshot).values()), key=natural)
            yield BehindUnstarted(gang, tuple(names))
