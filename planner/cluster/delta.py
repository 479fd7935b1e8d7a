"""The difference between two snapshots of a cluster, as a value that can be sent to another process.

A process that has the earlier snapshot can compute the later one from it. The delta lists the nodes, pods and
reservations that differ. They are found by object identity, because consecutive snapshots share what did not
change. There is no delta if the topologies changed, since all trees are then rebuilt; if the CEL engine of
the claims changed, since the engine is code and cannot be sent; or if there are more than `MANY` changes,
since building a new snapshot then costs no more.

Example: a pod was bound, and a gang ended. The delta has the pod and the gang's name, a few hundred bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from planner.cluster.facts import (
    RECORDS,
    VALUES,
    RecordChanges,
    differ,
    differing,
    fact,
    with_facts,
    with_records,
)
from planner.cluster.hardware_update import with_hardware
from planner.cluster.snapshot import Snapshot
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.reservation import Book, Reservation
from planner.persistent.persistent_map import may_differ
from planner.persistent.sequence_delta import Splice, sequence_delta, spliced

T = TypeVar("T")

MANY = 1000
"""Maximum number of changed nodes, pods, records and reservations in a delta."""


@dataclass(frozen=True, slots=True)
class SnapshotDelta:
    """The records that differ between two snapshots.

    `revision`: the book's revision in the later snapshot. `facts`: the later values of the facts that differ
    (`VALUES`), by path; `records`: the changes of those facts that have a record for each object. `nodes`,
    `pods`: those that are new or changed. `reservations`: the changes of the sequence of all reservations.
    """

    revision: int
    gone_nodes: tuple[str, ...] = ()
    nodes: tuple[Node, ...] = ()
    gone_pods: tuple[BoundPod, ...] = ()
    pods: tuple[BoundPod, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    records: RecordChanges = field(default_factory=dict)
    reservations: tuple[Splice[Reservation], ...] = ()

    @property
    def changes(self) -> int:
        """The number of records that differ."""
        objects = sum(map(len, (self.gone_nodes, self.nodes, self.gone_pods, self.pods)))
        objects += sum(map(len, self.records.values()))
        return objects + sum(max(splice.gone, len(splice.new)) for splice in self.reservations)


def delta(former: Snapshot, latest: Snapshot) -> SnapshotDelta | None:
    """Returns the difference between two snapshots; None if `latest` is better sent as a whole."""
    if former.topologies != latest.topologies or former.base.claims.engine != latest.base.claims.engine:
        return None
    gone_nodes, nodes = _nodes(former.nodes, latest.nodes)
    if len(gone_nodes) + len(nodes) > MANY:
        return None
    gone_pods, pods = _pods(former, latest)
    splices = sequence_delta(former.reservations, latest.reservations)
    facts = _facts(former, latest)
    records = {path: changes for path in RECORDS if (changes := _records(former, latest, path))}
    difference = SnapshotDelta(latest.revision, gone_nodes, nodes, gone_pods, pods, facts, records, splices)
    return difference if difference.changes <= MANY else None


def apply_delta(former: Snapshot, difference: SnapshotDelta) -> Snapshot:
    """Returns the later snapshot, computed from the earlier one (`former`); `former` if nothing differs."""
    if difference == SnapshotDelta(former.revision):
        return former
    snapshot = former
    for name in difference.gone_nodes:
        snapshot = snapshot.without_node(name)
    for node in difference.nodes:
        snapshot = snapshot.with_node(node)
    for pod in difference.gone_pods:
        snapshot = snapshot.without_pod(pod)
    for pod in difference.pods:
        snapshot = snapshot.with_pod(pod)
    if difference.facts or difference.records:
        hardware = with_records(with_facts(snapshot.base, difference.facts), difference.records)
        snapshot = with_hardware(snapshot, hardware)
    return snapshot.with_book(
        Book(difference.revision, spliced(former.reservations, difference.reservations))
    )


def _facts(former: Snapshot, latest: Snapshot) -> dict[str, object]:
    """Returns `SnapshotDelta.facts`. The CEL engine in the claims is code, so it is left out."""
    paths = (path for path in VALUES if path != "claims.engine")
    pairs = ((path, fact(former.base, path), fact(latest.base, path)) for path in paths)
    return {path: now for path, before, now in pairs if differ(before, now)}


def _records(former: Snapshot, latest: Snapshot, path: str) -> dict[str, object]:
    changes: dict[str, object] = differing(fact(former.base, path), fact(latest.base, path))
    return changes


def _nodes(
    former: Mapping[str, Node], latest: Mapping[str, Node]
) -> tuple[tuple[str, ...], tuple[Node, ...]]:
    """Returns the names of removed nodes, and the nodes that are new or changed."""
    pairs = [(name, former.get(name), latest.get(name)) for name in may_differ(former, latest)]
    gone = tuple(name for name, before, now in pairs if before is not None and now is None)
    return gone, tuple(now for _, before, now in pairs if now is not None and differ(before, now))


def _pods(former: Snapshot, latest: Snapshot) -> tuple[tuple[BoundPod, ...], tuple[BoundPod, ...]]:
    """Returns the removed pods, and those that are new or changed, node by node."""
    gone: list[BoundPod] = []
    pods: list[BoundPod] = []
    for node in may_differ(former.bound.by_node, latest.bound.by_node):
        before, now = former.bound.on(node), latest.bound.on(node)
        if before is now:
            continue
        names, by_name = {pod.name for pod in now}, {pod.name: pod for pod in before}
        gone += [pod for pod in before if pod.name not in names]
        pods += [pod for pod in now if differ(by_name.get(pod.name), pod)]
        if len(gone) + len(pods) > MANY:
            break
    return tuple(gone), tuple(pods)
