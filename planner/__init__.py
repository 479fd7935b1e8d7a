"""The planner: where a whole gang fits, told the same way to all who ask. No I/O, no clock, no chance.

    plan(snapshot, gang)                     planning/plan.py
      held? -> replay                        planning/replay.py
      problem = resolve(snapshot, gang)      request/       what is asked, made definite, once; or a Refusal
      outcome = place_gang(problem)          extensions/    by the wishes beyond constraints: leaf-spine rules
        place(problem)                       search/        (leafspine/), equal parts; of all others by the
                                                            search that one table gives it, over the trees of
                                                            cluster/ with the pods on hosts by node/
      placed? -> admitted(problem, outcome)  planning/      the answer, and what a reservation is made from
      if not  -> diagnose(problem, outcome)  explain/       why, and what would work: changed problems, placed

A `PodGroup` is what was read, a `ResolvedPodGroup` the same in one cluster, a `PlacementProblem` all that a
search needs; what is tried instead of it (other nodes, counts, levels) is a changed problem. Begin with
`planning.plan`.

Here are the names that most callers need; the rest is in the packages. Each imports only what stands below
it in this list:

- `simulation`: days of a cluster under several strategies
- `bandwidth`: what a place is worth
- `planning`: `plan`, replay, the reservation and node affinity that follow from an answer
- `explain`: why there is no place, and what nearest request has a place
- `extensions`: requests beyond constraints: which rules serve a gang, equal parts, elastic gangs
- `leafspine`: nod-ai's rules over a fabric of switches, as a choice of leaves to search
- `search`: the best placement in a tree, exact or said not to be
- `ledger`: who holds what: protocol, conflicts, SQLite
- `request`: a PodGroup made definite in a cluster, every contradiction told
- `manifests`: Kubernetes objects read into these records, and Reservations written
- `cluster`: what there is at a moment: nodes in trees, what is on them, free capacity by domain; immutable
- `node`: how many pods a node takes, with all that kubelet and device plugins look at
- `devices`: which devices of a node a set of claims can have (DRA)
- `model`: what is asked, answered and held: frozen records and Kubernetes' words
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
    """The name, imported when it is first asked for (PEP 562): who imports one small module of a package
    below must not pay for all of them."""
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _OFFERED[name]
    offered: object = getattr(import_module(module), attribute)
    globals()[name] = offered
    return offered


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
