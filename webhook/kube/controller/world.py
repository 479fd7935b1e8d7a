"""The cluster at one moment, as `reconcile` decides on it, for the controller and for `standing`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from planner.cluster.snapshot import Snapshot
from planner.model.reservation import Book
from webhook.admission.settings import queue_rules
from webhook.kube.controller.kueue_rounds import KueuePlaces
from webhook.kube.controller.reconcile import World
from webhook.kube.state.gangs import WATCHED
from webhook.kube.state.workload_watch import QueueWatch
from webhook.workloads.annotation_keys import namespace_of


def no_namespace(names: Iterable[str]) -> frozenset[str]:
    """Every namespace is enforced."""
    return frozenset()


def world_of(
    picture: Snapshot,
    book: Book,
    queue: QueueWatch,
    now: float,
    *,
    observed: Callable[[Iterable[str]], frozenset[str]],
    seen: frozenset[str] = frozenset(),
    kueue: KueuePlaces | None = None,
) -> World:
    """The nodes of `picture` under the settings in force, the book, and what the queue's watch has read.

    `now`: seconds since the epoch. `observed`: those of some namespaces that are not enforced; it is asked
    for every namespace in which something waits, runs, holds or is placed by Kueue. `seen`, `kueue`: as in
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
        seen,
        now,
        observed=observed(namespaces),
        limits=lambda namespace: settings(namespace).holds,
        patience={name: float(settings(name).unbound_seconds) for name in dict.fromkeys(namespaces)},
        rules=queue_rules(settings, now),
        kueue=kueue,
    )
