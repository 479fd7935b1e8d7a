"""The answer to a gang that has a place: its pods on nodes, the domain, and what it would hold."""

from __future__ import annotations

from collections.abc import Sequence

from planner.cluster.tree import Subtree
from planner.explain import messages
from planner.model.answer import Answer
from planner.model.topology import Domain, Topology
from planner.request.resolve import PlacementProblem
from planner.search.place import Outcome, assignments_of, common_domain, hosts_of


def admitted(problem: PlacementProblem, outcome: Outcome) -> Answer:
    """The answer that a placement comes to; `problem`: the request as it came."""
    best, searched = outcome.best, outcome.problem
    assert best is not None, "an admitted gang has a placement"
    assert best.found is not None, "the best result has a placement"
    hosts, topology, gang = hosts_of(best), best.tree.topology, searched.gang
    assignments = assignments_of(searched, best, hosts)
    domain = common_domain(hosts)
    reserves = _reserved(topology, domain, hosts) if gang.reserve == "domain" else ()
    unproved = () if best.found.exact else (messages.BUDGET_WARNING,)
    return Answer(
        gang=gang.name,
        decision="admitted",
        topology=topology.name,
        level=topology.levels[len(domain) - 1] if domain else "",
        domain=domain,
        reserves=reserves,
        assignments=assignments,
        reason="Placed",
        message=messages.placed(gang, topology, domain, assignments, reserves),
        warnings=(*searched.warnings, *best.asked.warnings, *unproved, *outcome.notes),
        attempts=tuple(reversed(best.attempts)),
        request=problem.asked,
    )


def _reserved(topology: Topology, domain: Domain, hosts: Sequence[Subtree]) -> tuple[Domain, ...]:
    """What the gang holds whole: its domain, or each domain of the reservable level that it touches."""
    reservable = topology.reservable_index
    if domain and len(domain) - 1 >= reservable:
        return (domain,)
    held: dict[Domain, None] = {}
    for path in (host.path for host in hosts):
        held[path[: reservable + 1] if path[reservable] else path] = None
    return tuple(held)
