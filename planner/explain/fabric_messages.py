"""Messages about the hard leaf-spine rules: the speed of links, the limits of a leaf."""

from __future__ import annotations

from planner.explain.alternatives import fewer_pods, slower_links
from planner.leafspine.rules import FabricOutcome, LeafLimits, LinksTooSlow, could_ever
from planner.model.answer import Answer
from planner.model.words import pods
from planner.request.resolve import PlacementProblem


def no_place(problem: PlacementProblem, outcome: FabricOutcome) -> Answer:
    """The answer to a gang that these rules leave no placement; `problem`: the request as received."""
    match outcome.shortage:
        case LinksTooSlow() as shortage:
            return _too_slow(problem, outcome, shortage)
        case LeafLimits() as shortage:
            return _limited(problem, outcome, shortage)
    raise AssertionError("an outcome of the leaf-spine rules says which of them is not kept")


def _too_slow(problem: PlacementProblem, outcome: FabricOutcome, shortage: LinksTooSlow) -> Answer:
    searched = outcome.problem
    ways = [way.words for way in slower_links(problem.when_empty())]
    message = (
        f"{searched.name} asks for links of {searched.gang.fabric.gbps:g} Gb/s between its nodes, "
        f"and no leaf has one; the fastest has {shortage.fastest:g}. "
        f"Would work: {ways[0] if ways else 'slower links for fewer pods'}."
    )
    return Answer(
        searched.name, "rejected", reason="NoLinkFastEnough", message=message, warnings=searched.warnings
    )


def _limited(problem: PlacementProblem, outcome: FabricOutcome, shortage: LeafLimits) -> Answer:
    searched, gang = outcome.problem, outcome.problem.gang
    settings = searched.snapshot.base.settings
    could = could_ever(searched, shortage.fabric)
    when = "fits the empty cluster but not now" if could else "can never fit"
    limits = f"{settings.nodes_per_leaf} nodes and {settings.gpus_per_leaf} GPUs of a gang"
    names = [pod_set.name for pod_set in gang.pod_sets]
    asked = problem if could else problem.when_empty()
    ways = [way.words for way in fewer_pods(asked, names, gang.size - 1)]
    message = (
        f"{pods(gang.size)} within the limits of {limits} in one leaf "
        f"(topologyConstraints of topology-scheduler-config) {when}: the leaves have room for at most "
        f"{pods(shortage.pods)} now. Would work{' now' if could else ''}: "
        f"{', or '.join([*ways, 'higher limits', *(['the end of other gangs'] if could else [])])}."
    )
    return Answer(
        searched.name,
        "queued" if could else "rejected",
        topology=shortage.fabric.topology.name,
        reason="LimitPerLeaf",
        message=message,
        warnings=searched.warnings,
    )
