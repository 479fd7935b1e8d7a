"""Who is in a domain: the movables that must leave it, or what keeps it from being freed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.planning.defragmentation.movable import Movable


@dataclass(frozen=True)
class Occupants:
    """The movables of a snapshot by name, by pod and so by node."""

    snapshot: Snapshot
    movables: Mapping[str, Movable]
    by_pod: Mapping[str, Movable]

    @staticmethod
    def of(snapshot: Snapshot, movables: Iterable[Movable]) -> Occupants:
        """Those of a snapshot."""
        by_name = {movable.name: movable for movable in movables}
        by_pod = {pod.name: movable for movable in by_name.values() for pod in movable.pods}
        return Occupants(snapshot, by_name, by_pod)

    def on(self, nodes: Iterable[str]) -> tuple[frozenset[str], str]:
        """The movables on these nodes that may leave, and why somebody cannot, "" where all may.

        DaemonSets' pods are on every node and stay. What a gang holds and does not use counts as used.
        """
        names: set[str] = set()
        strangers = []
        for node in nodes:
            for pod in self.snapshot.bound.on(node):
                movable = self.by_pod.get(pod.name)
                if movable is not None:
                    names.add(movable.name)
                elif not pod.daemon:
                    strangers.append(f"{pod.name} is on {node}, and what made it is not known")
            for held, _ in self.snapshot.holds.on(node):
                if held.gang in self.movables:
                    names.add(held.gang)
                else:
                    strangers.append(f"{held.gang} holds {node}, and has no pod on a node yet")
        kept = [f"{name} {self.movables[name].keeps}" for name in sorted(names) if self.movables[name].keeps]
        why = next(iter((*kept, *strangers)), "")
        return frozenset(name for name in names if not self.movables[name].keeps), why
