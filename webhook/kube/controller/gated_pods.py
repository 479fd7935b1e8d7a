"""Admits a gated pod: removes the gate and writes its place, in one merge patch. Pure.

The API server allows a gated pod's node affinity only to be tightened: requirements may be added to each
existing term, but terms may not be added. If the pod has terms of its own, a plan with several terms is
therefore written as one, by hostname.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.manifests.requirements import node_term_json
from planner.model.labels import Requirement, Term
from planner.model.topology import HOSTNAME
from webhook.workloads.keys.annotation_keys import QUEUED_GATE
from webhook.workloads.left_alone import KUEUE_TOPOLOGY_GATE
from webhook.workloads.node_affinity import REQUIRED

Json = dict[str, Any]


def let_in(
    pod: Mapping[str, Any], terms: Sequence[Term], hosts: Iterable[str], annotations: Mapping[str, str]
) -> Json:
    """Returns the merge patch that opens our gate and pins the pod to `terms` (ORed); `hosts` are the same by
    name.

    Other gates stay. The patch applies only to the version of the pod that was read.
    """
    spec = pod["spec"]
    gates = [gate for gate in spec.get("schedulingGates") or [] if gate.get("name") != QUEUED_GATE]
    patch: Json = {"schedulingGates": gates or None}
    node = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
    former = node.get("nodeSelectorTerms") or []
    if terms:
        wanted = tightened(former, terms, hosts)
        patch["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": wanted}}}
    version = pod["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version, "annotations": dict(annotations)}, "spec": patch}


def is_placed_by_kueue(spec: Mapping[str, Any]) -> bool:
    """Returns whether Kueue will write the pod's node: a place of ours might always contradict it."""
    return any(gate.get("name") == KUEUE_TOPOLOGY_GATE for gate in spec.get("schedulingGates") or [])


def tightened(former: Sequence[Mapping[str, Any]], terms: Sequence[Term], hosts: Iterable[str]) -> list[Json]:
    """Returns each existing term with our requirements, or our terms alone."""
    if not former:
        return [node_term_json(term) for term in terms]
    ours = terms[0] if len(terms) == 1 else (Requirement(HOSTNAME, "In", tuple(hosts)),)
    return [_with(term, node_term_json(ours)) for term in former]


def _with(term: Mapping[str, Any], ours: Json) -> Json:
    joined = dict(term)
    for kind, stated in ours.items():
        former = list(term.get(kind) or [])
        joined[kind] = former + [requirement for requirement in stated if requirement not in former]
    return joined
