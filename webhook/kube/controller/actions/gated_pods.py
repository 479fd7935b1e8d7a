"""Admits a gated pod: one merge patch removes the gate and pins the pod to its place. Pure.

The API server allows the node affinity of a gated pod only to be tightened: requirements may be added to each
existing term, but no term may be added. If the pod has terms already, a place that is described by several
terms is therefore written as one term, by hostname.
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
    """Returns the merge patch that removes our gate and pins the pod to nodes that match one of `terms`.

    `hosts`: the hostnames of these nodes. `annotations`: added to the pod. Other gates stay. The patch
    applies only to the version of the pod that was read.
    """
    spec = pod["spec"]
    gates = [gate for gate in spec.get("schedulingGates") or [] if gate.get("name") != QUEUED_GATE]
    patch: Json = {"schedulingGates": gates or None}  # a merge patch replaces lists; None removes the field
    node = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
    former = node.get("nodeSelectorTerms") or []
    if terms:
        wanted = tightened(former, terms, hosts)
        patch["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": wanted}}}
    version = pod["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version, "annotations": dict(annotations)}, "spec": patch}


def is_placed_by_kueue(spec: Mapping[str, Any]) -> bool:
    """Returns whether Kueue will pin the pod. Bayplan then adds no node affinity, which might contradict
    Kueue's.
    """
    return any(gate.get("name") == KUEUE_TOPOLOGY_GATE for gate in spec.get("schedulingGates") or [])


def tightened(former: Sequence[Mapping[str, Any]], terms: Sequence[Term], hosts: Iterable[str]) -> list[Json]:
    """Returns the pod's terms `former`, each with our requirements added, or only our `terms` if it has none.

    If `terms` are several, the added requirement is that the node is one of `hosts`.
    """
    if not former:
        return [node_term_json(term) for term in terms]
    ours = terms[0] if len(terms) == 1 else (Requirement(HOSTNAME, "In", tuple(hosts)),)
    # A term without requirements matches no node, and may not get any.
    return [_with(term, node_term_json(ours)) if any(term.values()) else dict(term) for term in former]


def _with(term: Mapping[str, Any], ours: Json) -> Json:
    joined = dict(term)
    for kind, stated in ours.items():
        former = list(term.get(kind) or [])
        joined[kind] = former + [requirement for requirement in stated if requirement not in former]
    return joined
