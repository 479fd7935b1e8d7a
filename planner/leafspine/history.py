"""How past gangs ended, by leaf: nod-ai's historicalPerformance, an exponential moving average.

The average of a leaf is 1 without history and if every gang in it succeeded; each gang that did not succeed
moves it toward 0. So without any history all leaves are equal, and the weight of historicalPerformance has no
effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.cluster.switch_graph import leaf_level
from planner.model.reservation import Reservation
from planner.model.topology import HOSTNAME, Domain, topology_named

WEIGHT = 0.3
"""The share of the latest gang in the average; the last six gangs make up about nine tenths of it."""


UNTRIED = 1.0
"""The average of a leaf without history, the same as that of a leaf in which all gangs succeeded."""


AS_GOOD = 0.9995
"""A leaf with this average or a higher one is removed from the history, so that it counts as `UNTRIED`."""


MOST_LEAVES = 5_000
"""Maximum number of leaves in the history, which is stored in one object. Leaves with the highest averages
are removed first: they then count as `UNTRIED`, which is nearly the same."""


History = Mapping[str, float]
"""The average of each leaf, by `key_of` the leaf."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A gang that has ended: the keys of the leaves that it used, and whether it succeeded (`well`)."""

    leaves: tuple[str, ...]
    well: bool


def key_of(topology: str, path: Domain) -> str:
    """Returns a leaf's key in the history: topology name and whole path, as names repeat across parents."""
    return "/".join((topology, *(value or "-" for value in path)))


def ended(snapshot: Snapshot, reservation: Reservation, *, well: bool) -> Ended:
    """Returns the record of the reservation's gang, without leaves if its topology has none or is gone."""
    topology = topology_named(snapshot.topologies, reservation.topology)
    if topology is None or topology.levels[0] == HOSTNAME:
        return Ended((), well)
    tree, level = snapshot.base.trees[topology.name], leaf_level(topology)
    names = (assignment.node for assignment in reservation.assignments if assignment.node in tree.places)
    leaves = (tree.ancestor(name, level) for name in names)
    return Ended(
        tuple(dict.fromkeys(key_of(topology.name, leaf.path) for leaf in leaves if leaf.has_name)), well
    )


def updated(history: History, endings: Iterable[Ended]) -> dict[str, float]:
    """Returns the history with these gangs added, in order; see `AS_GOOD` and `MOST_LEAVES` for the leaves
    that are removed.
    """
    scores = dict(history)
    for ending in endings:
        for leaf in ending.leaves:
            scores[leaf] = averaged(scores.get(leaf, UNTRIED), ending.well)
    worst = sorted(scores.items(), key=lambda item: (item[1], item[0]))[:MOST_LEAVES]
    return {leaf: round(value, 4) for leaf, value in sorted(worst) if value < AS_GOOD}


def averaged(before: float, ended_well: bool) -> float:
    """Returns the moving average after one more gang, 0 to 1."""
    return (1 - WEIGHT) * before + WEIGHT * (1.0 if ended_well else 0.0)
