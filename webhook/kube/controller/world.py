"""The cluster at one moment as `reconcile` reads it; for the controller and for display."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from planner.cluster.snapshot import Snapshot
from planner.model.cached_property import cached_property
from planner.model.names import namespace_of
from planner.model.reservation import Book
from webhook.admission.configuration.settings import queue_rules
from webhook.kube.controller.kueue.rounds import KueuePlaces
from webhook.kube.state.gangs import WATCHED, Unbound, Work
from webhook.kube.state.gathering import Gang, gangs_of
from webhook.kube.state.workload_watch import QueueWatch
from webhook.placement.fair_order import NO_RULES, QueueRules
from webhook.placement.hold_limits import Limits, no_limits


@dataclass(frozen=True)
class World:
    """The cluster at one moment, as far as it is known. `snapshot`: has the reservations too. `works`: the
    stored workloads. `pods`: the unbound pods. `kinds`: the workload kinds that are watched.

    `now`: seconds since the epoch. `observed`: the namespaces that are not enforced. `patience`: by
    namespace, for how many seconds an unused place is kept; 0 means forever. `limits`: returns what
    the gangs of a namespace may hold. `rules`: the rules of the queue's order. `kueue`: the places that Kueue
    has assigned; None if unknown.
    """

    snapshot: Snapshot
    works: tuple[Work, ...]
    pods: tuple[Unbound, ...]
    kinds: frozenset[str]
    now: float
    observed: frozenset[str] = frozenset()
    patience: Mapping[str, float] = field(default_factory=dict)
    limits: Limits = no_limits
    rules: QueueRules = NO_RULES
    kueue: KueuePlaces | None = None

    @cached_property
    def gangs(self) -> Mapping[str, Gang]:
        """Every gang by name; computed once, because a round reads it many times."""
        return gangs_of(self.works, self.pods)

    @cached_property
    def works_by_uid(self) -> Mapping[str, Work]:
        """The stored workloads by UID."""
        return {work.ref.uid: work for work in self.works}

    @cached_property
    def unbound_uids(self) -> frozenset[str]:
        """The UIDs of the unbound pods."""
        return frozenset(pod.ref.uid for pod in self.pods)


def no_namespace(names: Iterable[str]) -> frozenset[str]:
    """Returns no namespaces: for a cluster in which every namespace is enforced, so that none is observed."""
    return frozenset()


def world_of(
    picture: Snapshot,
    book: Book,
    queue: QueueWatch,
    now: float,
    *,
    observed: Callable[[Iterable[str]], frozenset[str]],
    kueue: KueuePlaces | None = None,
) -> World:
    """Returns the world: the nodes of `picture` with the current settings, the reservations of the book, and
    the workloads of the queue's watch.

    `now`: seconds since the epoch. `observed`: returns which of some namespaces are not enforced; called with
    every namespace that has a workload, an unbound pod, a reservation or a place of Kueue. `kueue`: as in
    `World`.
    """
    works, pods = queue.works(), queue.unbound()
    namespaces = (
        *(work.ref.namespace for work in works),
        *(pod.ref.namespace for pod in pods),
        *(namespace_of(held.gang) for held in book.reservations),
        *(place.ref.namespace for place in (kueue or {}).values()),
    )
    settings = queue.in_force()
    return World(
        settings("").of(picture).with_book(book),
        works,
        pods,
        frozenset(row.name for row in WATCHED),
        now,
        observed=observed(namespaces),
        limits=lambda namespace: settings(namespace).holds,
        patience={name: float(settings(name).unbound_seconds) for name in dict.fromkeys(namespaces)},
        rules=queue_rules(settings, now),
        kueue=kueue,
    )
