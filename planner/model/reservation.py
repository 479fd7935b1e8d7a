"""Reservations: what a gang holds, and the traits of its pods that affect other gangs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from planner.model.claim_spec import ClaimSpec
from planner.model.pod import Alignment, PodTerm
from planner.model.podgroup import Assignment, HoldMode
from planner.model.resolved import ResolvedShape
from planner.model.resources import Resources
from planner.model.topology import Domain

State = Literal["held", "claimed"]
"""A reservation expires while it is `held`; it is permanent once the workload exists (`claimed`)."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one gang holds.

    `id` is derived from the gang's name (`reservation_id`), so a gang always has the same id. `level`,
    `domain`: the finest domain that contains the whole placement. `fingerprint`: a digest of the request, by
    which a changed request of a gang of the same name is detected. `domains` are held whole (mode `domain`);
    `nodes` are all nodes inside these domains at planning time. `assignments` with `requests` (per pod of
    each PodSet, base units) are what the gang uses on each node. `created` and `expires` are seconds since
    the epoch; `expires` is None once the reservation is claimed. `owner_uid`: the workload's UID, which only
    the validating webhook learns; "" before. `traits`: further properties of the PodSets' pods that affect
    other gangs, without PodSets that have none. `left_nodes`: nodes that the gang was moved off, where its
    pods may go on until they are replaced.
    """

    id: str
    gang: str
    topology: str
    level: str
    domain: Domain
    mode: HoldMode
    domains: tuple[Domain, ...]
    nodes: frozenset[str]
    assignments: tuple[Assignment, ...]
    requests: tuple[tuple[str, Resources], ...]
    fingerprint: str
    created: float = 0.0
    expires: float | None = None
    state: State = "held"
    owner_uid: str = ""
    traits: tuple[tuple[str, ReservedPodTraits], ...] = ()
    left_nodes: frozenset[str] = frozenset()

    @property
    def seats(self) -> int:
        """The number of pods for which the reservation has room."""
        return sum(assignment.count for assignment in self.assignments)

    @property
    def touched(self) -> frozenset[str]:
        """The names of all nodes that the reservation holds or uses."""
        return self.nodes | {assignment.node for assignment in self.assignments}


@dataclass(frozen=True, slots=True)
class Book:
    """All reservations of the ledger at one moment; `revision` increases with every change."""

    revision: int
    reservations: tuple[Reservation, ...]


def reservation_id(gang: str) -> str:
    """Returns a gang's reservation id: a digest of its name that is a valid label value, the same on every
    replica and every retry.
    """
    return "bp-" + hashlib.sha256(gang.encode()).hexdigest()[:16]


KUEUE_KIND = "KueueWorkload"
"""The kind in the name of a gang that stands for a Kueue Workload, which only Kueue places and finishes."""


def kueue_gang(namespace: str, workload: str) -> str:
    """Returns the gang name under which the nodes that Kueue assigned to a Workload are reserved."""
    return f"{namespace}/{KUEUE_KIND}/{workload}"


@dataclass(frozen=True, slots=True)
class ReservedPodTraits:
    """The properties of one pod of a PodSet that affect other gangs.

    `alignment`: the requests that the kubelet aligns to NUMA zones; None if only the pod's requests are
    known. `terms`: its required anti-affinity.
    """

    alignment: Alignment | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    terms: tuple[PodTerm, ...] = ()
    claim_specs: tuple[ClaimSpec, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.alignment or self.labels or self.terms or self.claim_specs)


def traits_of(shape: ResolvedShape) -> ReservedPodTraits:
    """Returns the traits of pods of this shape."""
    guards = tuple(term for term in shape.terms if not term.attracts)
    return ReservedPodTraits(shape.alignment or None, shape.labels, guards, shape.claim_specs)
