"""Describes what a gang holds and why, as the end of a sentence that begins with "it"."""

from __future__ import annotations

from collections.abc import Sequence

from planner.explain.messages import name_of
from planner.model.holding import Holding
from planner.model.podgroup import Assignment, PodGroup
from planner.model.topology import Domain, Topology, short
from planner.model.words import counted, listed


def held_words(topology: Topology, held: Holding, gang: PodGroup, assignments: Sequence[Assignment]) -> str:
    """Returns what the gang holds and why, for example "holds the rack r1, because it requires one"."""
    if held.mode == "none":
        return "holds nothing (bayplan.dev/reserve: none)"
    if held.mode == "nodes":
        return f"holds what it uses: {_usage_text(gang, held, assignments)}{_other_gang_text(topology, held)}"
    whole = _domain_names(topology, held.domains)
    if not held.shares:
        return f"holds {whole} (bayplan.dev/reserve: domain)"
    return f"holds {whole}, because it {_reason_text(topology, held)}"


def _reason_text(topology: Topology, held: Holding) -> str:
    # A share is the part of a domain's GPUs that the gang takes (`model.holding`).
    by_share = [share for share in held.shares if not share.required]
    if by_share:
        taken, gpus = sum(share.taken for share in by_share), sum(share.gpus for share in by_share)
        return f"takes {taken} of {counted(gpus, 'GPU')} there"
    level = topology.levels[held.level]
    holds_required_level = any(len(domain) - 1 == held.level for domain in held.domains)
    return "requires one" if holds_required_level else f"requires one {short(level)}"


def _usage_text(gang: PodGroup, held: Holding, assignments: Sequence[Assignment]) -> str:
    """Returns the number of GPUs that the gang uses, with the node's total if it uses a single node and could
    have held it whole; for a gang without whole GPUs, only the nodes.
    """
    nodes = list(dict.fromkeys(assignment.node for assignment in assignments))
    where = f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes"
    if not gang.gpus:
        return where if len(nodes) > 1 else f"its share of {where}"
    if len(nodes) == 1 and len(held.shares) == 1 and held.shares[0].domain[-1:] == (nodes[0],):
        return f"{gang.gpus} of {held.shares[0].gpus} GPUs of {where}"
    return f"{counted(gang.gpus, 'GPU')} of {where}"


def _other_gang_text(topology: Topology, held: Holding) -> str:
    """Returns text that names another gang in the domain that the gang requires; because of this other gang,
    the gang cannot hold the domain whole. "" if there is none.
    """
    other = next((share for share in held.shares if share.other_gang and share.required), None)
    return (
        ""
        if other is None
        else f", for {other.other_gang} is in {_domain_names(topology, (other.domain,))} too"
    )


def _domain_names(topology: Topology, domains: Sequence[Domain]) -> str:
    """Returns the names of the domains: "the rack r1" for a single one, "r1, r2" for several."""
    names = listed([name_of(domain) for domain in domains])
    return f"the {short(topology.levels[len(domains[0]) - 1])} {names}" if len(domains) == 1 else names
