"""The actions of the controller: a record for each kind, from `reconcile` to `controller`."""

from __future__ import annotations

from dataclasses import dataclass

from planner.ledger.conflicts import Headroom
from planner.model.answer import Answer
from planner.model.reservation import Reservation
from webhook.kube.controller.replanning.replan import Move
from webhook.kube.state.gangs import Ref, Unbound
from webhook.kube.state.gathering import Gang
from webhook.kube.state.kueue_places import KueuePlace
from webhook.placement.fair_order import QueuePlace


@dataclass(frozen=True, slots=True)
class Release:
    """Release a reservation. `gang` is None if there is no object left for an event."""

    reservation: Reservation
    why: str
    gang: Gang | None = None


@dataclass(frozen=True, slots=True)
class ClaimFor:
    """Claim the hold of an existing gang: it no longer expires."""

    reservation: Reservation
    gang: Gang


@dataclass(frozen=True, slots=True)
class MoveTo:
    """Replace a gang's reservation; planned on the snapshot's revision, and leaves `headroom`."""

    gang: Gang
    move: Move
    why: str
    headroom: Headroom


@dataclass(frozen=True, slots=True)
class Follow:
    """Pods of a gang were bound elsewhere than planned: it holds this now."""

    gang: Gang
    reservation: Reservation


@dataclass(frozen=True, slots=True)
class Restore:
    """Restore the vanished reservation of an admitted gang; leaves `headroom`."""

    gang: Gang
    reservation: Reservation
    headroom: Headroom


@dataclass(frozen=True, slots=True)
class Stuck:
    """A gang lost nodes, or its reservation, and has no other place now."""

    gang: Gang
    why: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class LeftUnbound:
    """Pods of a gang have been unbound for a while: because of its scheduler although it holds a place, or at
    a gate that others open.
    """

    gang: Gang
    pods: tuple[Unbound, ...]


@dataclass(frozen=True, slots=True)
class LetIn:
    """Open the gate of pods whose gang holds a place, prefers to start without one, or waits for nodes of an
    autoscaler.
    """

    gang: Gang
    reservation: Reservation | None
    pods: tuple[Unbound, ...]
    pins: bool = True
    """False if another scheduler chooses their nodes: the pods get the reservation, but no node affinity."""


@dataclass(frozen=True, slots=True)
class Ungate:
    """Open the gate of pods whose namespace is not enforced any more; the event is on `ref`."""

    ref: Ref
    pods: tuple[Unbound, ...]


@dataclass(frozen=True, slots=True)
class Admit:
    """A waiting gang has a place: reserve it, annotate the workload, and admit its pods."""

    gang: Gang
    answer: Answer
    reservation: Reservation | None
    headroom: Headroom


@dataclass(frozen=True, slots=True)
class Beside:
    """A member of a gang that holds a place waits: there is no room for it beside that."""

    gang: Gang
    member: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class WaitAction:
    """A gang waits: its position from 1, and the number of waiting gangs. `answer`: None if it was not
    planned this time. `place`: why it has this position.
    """

    gang: Gang
    position: int
    of: int
    answer: Answer | None
    place: QueuePlace


@dataclass(frozen=True, slots=True)
class Adopt:
    """Kueue has assigned these nodes: hold them for the Workload or its gang; leaves `headroom`."""

    place: KueuePlace
    reservation: Reservation
    headroom: Headroom
    tell: Ref


@dataclass(frozen=True, slots=True)
class NotAdopted:
    """Part of what Kueue has assigned is not available, and why."""

    place: KueuePlace
    why: str
    tell: Ref


@dataclass(frozen=True, slots=True)
class TellSize:
    """Tell KAI that a Job's gang has fewer pods now, because some have succeeded."""

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
    | Ungate
    | Admit
    | WaitAction
    | Beside
)
