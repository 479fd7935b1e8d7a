"""The cheapest moves that free a number of whole domains of a level.

A domain that is already free counts and costs nothing. The search visits sets of as many domains as are
requested, in order of cost, and returns the first set whose occupants all have another place, so no cheaper
set is sufficient. Movables outside the chosen domains stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.subtree import Subtree
from planner.model.topology import Domain, Topology, short
from planner.model.words import counted
from planner.planning.defragmentation.cheapest import CheapestFirst
from planner.planning.defragmentation.evacuation import WithoutPlace, evacuate, moved
from planner.planning.defragmentation.joint_plan import Plan
from planner.planning.defragmentation.movable import Movable, cost_of
from planner.planning.defragmentation.occupants import Occupants
from planner.planning.defragmentation.result import ATTEMPTS, Defragmentation, NoMoves


def free_domains(
    snapshot: Snapshot,
    movables: Iterable[Movable],
    topology: Topology,
    level: str,
    count: int,
    plan: Plan,
) -> Defragmentation | NoMoves:
    """Returns the moves that free `count` (1 or more) domains of the level, or a `NoMoves` that says why
    there are none.

    `level`: a label key of the topology. Only domains whose nodes are all ready and not cordoned are freed.
    If the search ends after `ATTEMPTS` planned sets, the result is not `exact`: a more expensive set may be
    sufficient.
    """
    occupants, tree = Occupants.of(snapshot, movables), snapshot.base.trees[topology.name]
    branches = [branch for branch in _of_level(tree.root, topology.index(level)) if branch.has_name]
    names_in = {branch.path: tree.names(branch) for branch in branches}
    leaving, kept = _leaving_and_kept(occupants, names_in)
    if len(leaving) < count:
        return _too_few(len(leaving), len(branches), short(level), count, kept)
    by_cost = sorted(leaving, key=lambda path: cost_of(occupants.movables[name] for name in leaving[path]))
    search = CheapestFirst(
        [leaving[path] for path in by_cost],
        dict(occupants.movables),
        lambda chosen: count - len(chosen),
    )
    stuck = None
    for attempt, (_, chosen) in enumerate(search):
        domains = [by_cost[index] for index in chosen]
        nodes = [name for path in domains for name in names_in[path]]
        leavers = [occupants.movables[name] for name in search.names(chosen)]
        moves = evacuate(snapshot, leavers, nodes, plan)
        if not isinstance(moves, WithoutPlace):
            return Defragmentation(
                topology,
                level,
                tuple(path for path in leaving if path in domains),
                tuple(nodes),
                tuple(moves),
                snapshot,
                moved(snapshot, moves),
            )
        stuck = stuck or moves
        if attempt + 1 == ATTEMPTS:
            search.spent = True  # some sets were not planned, so the result is not exact
            break
    return _no_other_place(stuck, short(level), count, kept, exact=not search.spent)


def _of_level(branch: Subtree, level: int) -> Iterable[Subtree]:
    """Yields the domains of a level in tree order."""
    if branch.level == level:
        yield branch
        return
    for child in branch.children:
        yield from _of_level(child, level)


def _leaving_and_kept(
    occupants: Occupants, names_in: Mapping[Domain, Iterable[str]]
) -> tuple[dict[Domain, frozenset[str]], dict[Domain, str]]:
    """Returns for each domain that can be freed the movables that must leave it, and for each other one why
    it cannot.

    `names_in`: the nodes of each domain.
    """
    leaving: dict[Domain, frozenset[str]] = {}
    kept: dict[Domain, str] = {}
    for path, nodes in names_in.items():
        movables, why = _occupants(occupants, nodes)
        if why:
            kept[path] = why
        else:
            leaving[path] = movables
    return leaving, kept


def _occupants(occupants: Occupants, names: Iterable[str]) -> tuple[frozenset[str], str]:
    """Returns the names of the movables that must leave these nodes of a domain, and why the domain cannot be
    freed ("" if it can).
    """
    for name in names:
        node = occupants.snapshot.nodes[name]
        if node.cordoned or not node.ready:
            return frozenset(), f"{name} is {'cordoned' if node.cordoned else 'not ready'}"
    return occupants.leaving(names)


def _too_few(free: int, all_domains: int, word: str, count: int, kept: dict[Domain, str]) -> NoMoves:
    if all_domains < count:
        return NoMoves(
            "TooFewDomains", f"the cluster has {counted(all_domains, f'{word} domain')} and no more", kept
        )
    domains = counted(all_domains, f"{word} domain")
    message = f"only {free} of {domains} can be freed: the others are kept"
    if not free:
        message = f"none of {domains} can be freed: each is kept"
    return NoMoves("DomainsKept", message, kept)


def _no_other_place(
    stuck: WithoutPlace | None, word: str, count: int, kept: dict[Domain, str], *, exact: bool
) -> NoMoves:
    cheapest = (
        f"; of the cheapest {count}, {stuck.movable.name} has none: {stuck.answer.message}" if stuck else ""
    )
    tried = "" if exact else ", as far as was searched"
    wanted = counted(count, f"{word} domain")
    message = f"{wanted} cannot be emptied{tried}: the pods have no other place{cheapest}"
    return NoMoves("NoOtherPlace", message, kept, exact)
