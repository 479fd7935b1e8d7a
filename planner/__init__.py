"""The planner: finds nodes for all pods of a gang, or says why there are none. Pure: no I/O, clock or chance.

    plan(snapshot, gang)                     planning/plan.py
      held? -> replay                        planning/replay.py
      problem = resolve(snapshot, gang)      request/       topology, levels and pod classes; or a Refusal
      outcome = place_gang(problem)          extensions/    leaf-spine gangs (leafspine/) and equal parts have
        place(problem)                       search/        rules of their own; for every other gang one table
                                                            names the search, which runs over the trees of
                                                            cluster/ and packs pods on hosts with node/
      placed? -> admitted(problem, outcome)  planning/      the answer, from which a reservation is made
      if not  -> diagnose(problem, outcome)  explain/       the reason, and similar requests that have a place

A `PodGroup` is the request as read, a `ResolvedPodGroup` the request in one cluster, and a `PlacementProblem`
the input of a search. To try other nodes, counts or levels, the planner changes the problem and searches
again. Begin with `planning.plan`.

This module offers the names that most callers need. Each package imports only packages below it in this list:

- `simulation`: days of a cluster under several strategies
- `bandwidth`: the all-reduce bandwidth of a placement
- `planning`: `plan`, replay, the reservation and node affinity that follow from an answer
- `explain`: why there is no place, and what nearest request has a place
- `extensions`: which rules place a gang: leaf-spine, equal parts, elastic gangs
- `leafspine`: nod-ai's rules over a fabric of switches, as a choice of leaves to search
- `search`: the best placement in a topology tree; the answer says where it was not proved best
- `ledger`: who holds what: protocol, conflicts, SQLite
- `request`: resolves a PodGroup in a cluster, and rejects a request that contradicts itself
- `manifests`: reads Kubernetes objects into these records, and writes Reservations
- `cluster`: a cluster at one moment: nodes in trees, their pods, free capacity by domain; immutable
- `node`: how many pods a node takes, by the rules of the kubelet and of device plugins
- `devices`: which devices of a node a set of claims can have (DRA)
- `model`: frozen records of requests, answers and reservations, in Kubernetes' terms
- `persistent`: immutable collections with cheap changes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.cluster.snapshot import Snapshot
    from planner.manifests.cluster import read as read_cluster
    from planner.model.answer import Answer
    from planner.model.podgroup import PodGroup
    from planner.model.reservation import Reservation
    from planner.planning.plan import plan

__all__ = ["Answer", "PodGroup", "Reservation", "Snapshot", "plan", "read_cluster"]

_OFFERED = {
    "Answer": ("planner.model.answer", "Answer"),
    "PodGroup": ("planner.model.podgroup", "PodGroup"),
    "Reservation": ("planner.model.reservation", "Reservation"),
    "Snapshot": ("planner.cluster.snapshot", "Snapshot"),
    "plan": ("planner.planning.plan", "plan"),
    "read_cluster": ("planner.manifests.cluster", "read"),
}


def __getattr__(name: str) -> object:
    """Imports a name on first use (PEP 562), so that importing one small module does not load everything."""
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _OFFERED[name]
    offered: object = getattr(import_module(module), attribute)
    globals()[name] = offered
    return offered


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
