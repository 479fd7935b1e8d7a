"""The CEL variable `plan`: the planner's answer for an object and for each of its PodSets, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.manifests.requirements import node_term_json
from planner.model.effort.deadline import poll
from planner.model.podgroup import Assignment
from webhook.placement.rank_order import in_order
from webhook.placement.workload_plan import GangPlan, WorkloadPlan

NO_PLAN: Mapping[str, Any] = {
    "decision": "none",
    "topology": "",
    "level": "",
    "domain": [],
    "reserves": [],
    "nodes": [],
    "ranks": [],
    "gangs": [],
    "requirements": [],
    "reservation": "",
    "reason": "",
    "message": "",
}
"""The value of `plan` for an object that is not planned (no GPU, no topology key): decision `none`."""


class PlanVariable:
    """The variable `plan` for an object and for each of its PodSets.

    Policies may read it for hundreds of PodSets, so what is equal for all of them is computed once.
    """

    def __init__(self, plan: WorkloadPlan) -> None:
        self._plan = plan
        self._gangs = [_AssignmentsByPodSet(placed) for placed in plan.placed]
        self._common = _common(plan)
        self._requirements = {
            name: [node_term_json(term) for term in terms] for name, terms in plan.terms().items()
        }

    def of(self, pod_set: str) -> Mapping[str, Any]:
        """Returns `plan` for the PodSet on whose template a policy runs, or for the whole object if "".

        `nodes`: the nodes of the PodSet's pods. `ranks`: the node of each rank of the PodSet, neighbouring
        ranks close in the topology; empty for the whole object. If the object has several gangs, `ranks` are
        those of the first gang whose decision is the object's. `gangs`: each gang (for example each
        replica of a LeaderWorkerSet) with name, decision, level, domain and nodes. `requirements`: the ORed
        node-selector terms that pin the pods to these nodes, [] without a placement.
        """
        poll("policies")
        nodes = [list(dict.fromkeys(a.node for a in gang.of(pod_set))) for gang in self._gangs]
        first = next(gang for gang in self._gangs if gang.placed is self._plan.first)
        return {
            **self._common,
            "nodes": list(dict.fromkeys(node for of_gang in nodes for node in of_gang)),
            "ranks": list(in_order(first.of(pod_set))) if pod_set else [],
            "gangs": [gang.shown(of_gang) for gang, of_gang in zip(self._gangs, nodes, strict=True)],
            "requirements": self._requirements.get(pod_set, []),
        }


class _AssignmentsByPodSet:
    """The assignments of one gang, by PodSet."""

    def __init__(self, placed: GangPlan) -> None:
        self.placed = placed
        self._by_pod_set: dict[str, list[Assignment]] = {}
        for assignment in placed.answer.assignments:
            self._by_pod_set.setdefault(assignment.pod_set, []).append(assignment)

    def of(self, pod_set: str) -> Sequence[Assignment]:
        """Returns the assignments of a PodSet; those of all PodSets for ""."""
        return self._by_pod_set.get(pod_set, ()) if pod_set else self.placed.answer.assignments

    def shown(self, nodes: list[str]) -> dict[str, Any]:
        """Returns the gang as JSON, with these nodes."""
        answer = self.placed.answer
        return {
            "name": self.placed.group.name,
            "decision": answer.decision,
            "level": answer.level,
            "domain": list(answer.domain),
            "nodes": nodes,
        }


def _common(plan: WorkloadPlan) -> Mapping[str, Any]:
    """Returns the part of the variable that is equal for all PodSets."""
    answer = plan.first.answer
    return {
        "decision": plan.decision,
        "topology": answer.topology,
        "level": answer.level,
        "domain": list(answer.domain),
        "reserves": plan.domains,
        "reservation": ",".join(r.id for r in plan.reservations),
        "reason": answer.reason,
        "message": plan.message(),
    }
