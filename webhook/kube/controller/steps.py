"""The actions of the controller: a record for each kind. `reconcile` returns them, `actions/` carries them
out. `headroom`: what a plan leaves free on its nodes, for the ledger's check (`conflicts.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.ledger.conflicts import Headroom
from planner.model.answer import Answer
from planner.model.reservation import Reservation
from webhook.kube.controller.evictions import BehindUnstarted, LetInForEvictions
from webhook.kube.controller.replanning.replan import Move
from webhook.kube.state.gangs import Ref, Unbound
from webhook.kube.state.gathering import Gang
from webhook.kube.state.kueue_places import KueuePlace
from webhook.placement.fair_order import QueuePlace


@dataclass(frozen=True, slots=True)
class Release:
    """Release a reservation. `why`: the reason, for the event. `gang`: None if no object is left on which the
    event could be written.
    """

    reservation: Reservation
    why: str
    gang: Gang | None = None


@dataclass(frozen=True, slots=True)
class ClaimFor:
    """Claim the hold of an existing gang, so that it does not expire."""

    reservation: Reservation
    gang: Gang


@dataclass(frozen=True, slots=True)
class MoveTo:
    """Replace the reservation of a gang that lost nodes, or whose nodes are outside its flavor in Kueue.
    `why`: these nodes with the reasons, as text.
    """

    gang: Gang
    move: Move
    why: str
    headroom: Headroom


@dataclass(frozen=True, slots=True)
class Follow:
    """Replace the reservation of a gang by one with the nodes to which its pods were really bound."""

    gang: Gang
    reservation: Reservation


@dataclass(frozen=True, slots=True)
class Restore:
    """Reserve a place again for an admitted gang whose reservation has vanished."""

    gang: Gang
    reservation: Reservation
    headroom: Headroom


@dataclass(frozen=True, slots=True)
class Stuck:
    """Report that a gang has lost nodes or its reservation (`why`, as text), and that there is no other place
    for it (`answer`: the planner's).
    """

    gang: Gang
    why: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class LeftUnbound:
    """Report that pods of a gang have been unbound for a while: the scheduler does not bind them although the
    gang holds a place, or they wait at a scheduling gate of another controller. `outdated`: those of the pods
    that are pinned to a former place of the gang.
    """

    gang: Gang
    pods: tuple[Unbound, ...]
    outdated: tuple[Unbound, ...] = ()


@dataclass(frozen=True, slots=True)
class LetIn:
    """Remove the gate of pods whose gang holds a place, starts with or without one, or waits for nodes of an
    autoscaler. `reservation`: None if the gang holds no place.
    """

    gang: Gang
    reservation: Reservation | None
    pods: tuple[Unbound, ...]
    pins: bool = True
    """False if another scheduler chooses the nodes: the pods get the reservation's id, but no node affinity.
    """


@dataclass(frozen=True, slots=True)
class Ungate:
    """Remove the gate of pods whose namespace is not enforced; the event is written on `ref`. `refs`: their
    workloads, which do not wait any more.
    """

    ref: Ref
    pods: tuple[Unbound, ...]
    refs: tuple[Ref, ...] = ()


@dataclass(frozen=True, slots=True)
class Admit:
    """Admit a waiting gang: reserve its place, annotate the workload, and remove the gate of its pods.
    `reservation`: None if the gang reserves nothing (mode `none`).
    """

    gang: Gang
    answer: Answer
    reservation: Reservation | None
    headroom: Headroom


@dataclass(frozen=True, slots=True)
class NotePlace:
    """Write the place that a gang holds onto its workloads, which was not done when it was reserved."""

    gang: Gang
    reservation: Reservation


@dataclass(frozen=True, slots=True)
class Beside:
    """Report that a late member waits, because there is no room for it beside what its gang holds. `member`:
    the name of its object.
    """

    gang: Gang
    member: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class WaitAction:
    """Report that a gang waits: its position from 1, and `of`, the number of waiting gangs. `answer`: None if
    the gang was not planned in this round. `place`: why it has this position.
    """

    gang: Gang
    position: int
    of: int
    answer: Answer | None
    place: QueuePlace


@dataclass(frozen=True, slots=True)
class Adopt:
    """Reserve nodes that Kueue has assigned, for the Workload or its gang. The event is written on the object
    `tell`.
    """

    place: KueuePlace
    reservation: Reservation
    headroom: Headroom
    tell: Ref


@dataclass(frozen=True, slots=True)
class NotAdopted:
    """Report, on the object `tell`, that a part of what Kueue has assigned is not available, and why."""

    place: KueuePlace
    why: str
    tell: Ref


@dataclass(frozen=True, slots=True)
class TellSize:
    """Tell KAI that a Job's gang has become smaller, because some of its pods have succeeded. `size`: how
    many pods KAI should start together from now on.
    """

    ref: Ref
    size: int


Action = (
    TellSize
    | Adopt
    | NotAdopted
    | Release
    | ClaimFor
    | MoveTo
    | Follow
    | LeftUnbound
    | Restore
    | Stuck
    | LetIn
    | LetInForEvictions
    | BehindUnstarted
    | Ungate
    | NotePlace
    | Admit
    | WaitAction
    | Beside
)


PACED = (WaitAction, Beside, BehindUnstarted, NotePlace)
"""The actions that are due for long, and not carried out in each round (`pace.PositionPace`)."""
