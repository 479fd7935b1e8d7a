"""The occupants of a domain: the movables that must leave it, or what prevents freeing it.

A movable is a gang or a single pod that moves as a unit (`movable.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.planning.defragmentation.movable import Movable


@dataclass(frozen=True)
class Occupants:
    """The movables of a snapshot: `movables`, by their name; `by_pod`, by the name of each of their pods."""

    snapshot: Snapshot
    movables: Mapping[str, Movable]
    by_pod: Mapping[str, Movable]

    @staticmethod
    def of(snapshot: Snapshot, movables: Iterable[Movable]) -> Occupants:
        """Returns the index of these movables."""
        by_name = {movable.name: movable for movable in movables}
        by_pod = {pod.name: movable for movable in by_name.values() for pod in movable.pods}
        return Occupants(snapshot, by_name, by_pod)

    def leaving(self, nodes: Iterable[str]) -> tuple[frozenset[str], str]:
        """Returns the names of the movables on these nodes that may leave, and why the nodes cannot be
        cleared ("" if they can).

        DaemonSet pods run on every node and stay. A gang that holds a node without using it must leave it
        too.
        """
        names: set[str] = set()
        unknown = []
        for node in nodes:
            for pod in self.snapshot.bound.on(node):
                movable = self.by_pod.get(pod.name)
                if movable is not None:
                    names.add(movable.name)
                elif not pod.daemon:
                    unknown.append(f"{pod.name} is on {node}, and what made it is not known")
            for held, _ in self.snapshot.holds.on(node):
                if held.gang in self.movables:
                    names.add(held.gang)
                else:
                    unknown.append(f"{held.gang} holds {node}, and has no pod on a node yet")
        kept = [
            f"{name} {self.movables[name].kept_because}"
            for name in sorted(names)
            if self.movables[name].kept_because
        ]
        why = next(iter((*kept, *unknown)), "")
        return frozenset(name for name in names if not self.movables[name].kept_because), why
