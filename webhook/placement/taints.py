"""Computes the taint of reserved domains, which keeps other pods off them, and the tolerations for it. Pure.

By default, node affinity keeps a domain free: every pod with GPUs is planned and gets the affinity of its
place, and a pod without a place gets an affinity that excludes reserved nodes. The taint, which is optional,
also keeps off all other pods: those without a GPU, those that opt out of planning (`bayplan.dev/skip`), and
those that are older than Bayplan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.manifests.requirements import node_term_json
from planner.model.labels import NODE_NAME_FIELD, RESERVED_TAINT, Requirement, Term
from planner.model.natural_order import natural
from planner.model.reservation import Reservation, reservation_id
from planner.model.topology import HOSTNAME
from webhook.workloads.node_affinity import require

Json = dict[str, Any]


EFFECT = "NoSchedule"
"""The effect of Bayplan's taint."""


def holder(gang: str) -> str:
    """Returns the taint's value: a digest of the name of the object that the gang belongs to, which is the
    same for all replicas of the object."""
    return reservation_id("/".join(gang.split("/")[:3]))


def toleration(gang: str) -> Json:
    """Returns the toleration that lets a gang's pods onto the nodes that the gang holds whole."""
    return {"key": RESERVED_TAINT, "operator": "Equal", "value": holder(gang), "effect": EFFECT}


def with_tolerations(stated: Iterable[Mapping[str, Any]] | None, held: Iterable[Reservation]) -> list[Json]:
    """Returns a pod's tolerations, plus those for the domains that these reservations hold whole."""
    tolerations = [dict(entry) for entry in stated or ()]
    for reservation in held:
        own = toleration(reservation.gang)
        if reservation.mode == "domain" and own not in tolerations:
            tolerations.append(own)
    return tolerations


def desired_taints(snapshot: Snapshot) -> dict[str, str]:
    """Returns the taint's value by node, for the nodes that gangs hold whole."""
    return {
        node: holder(held.gang)
        for held in snapshot.reservations
        if held.mode == "domain"
        for node in snapshot.held_nodes(held)
        if node in snapshot.nodes
    }


def taint_changes(current: Mapping[str, str], desired: Mapping[str, str]) -> dict[str, str]:
    """Returns the new value of the taint by node, for the nodes whose taint must change; "" removes it.

    `current`, `desired`: the value by node."""
    put = {node: value for node, value in desired.items() if current.get(node) != value}
    return put | {node: "" for node, value in current.items() if value and node not in desired}


def reserved_taint_value(taints: Iterable[Mapping[str, Any]]) -> str:
    """Returns the value of Bayplan's taint among a node's taints, "" if absent."""
    return str(next((taint.get("value", "") for taint in taints if taint.get("key") == RESERVED_TAINT), ""))


def taint_patch(version: str, taints: Iterable[Mapping[str, Any]], value: str) -> Json:
    """Returns the merge patch that sets Bayplan's taint on a node ("" removes it) and keeps all other taints.

    A merge patch replaces the whole list of taints, so it has the `resourceVersion` that was read: the API
    server refuses it if the node has changed since."""
    others = [dict(taint) for taint in taints if taint.get("key") != RESERVED_TAINT]
    own = [{"key": RESERVED_TAINT, "value": value, "effect": EFFECT}] if value else []
    return {"metadata": {"resourceVersion": version}, "spec": {"taints": [*others, *own] or None}}


def keep_off_reserved(pod: Mapping[str, Any], snapshot: Snapshot) -> Mapping[str, Any]:
    """Returns a pod that has no place with a node affinity that excludes the nodes that gangs hold whole."""
    spec, term = pod.get("spec"), excluding(snapshot, snapshot.holders)
    if not term or not isinstance(spec, Mapping):
        return pod
    return {**pod, "spec": {**spec, "affinity": require(spec.get("affinity"), [node_term_json(term)])}}


def excluding(snapshot: Snapshot, names: Iterable[str]) -> Term:
    """Returns the node requirements that exclude these nodes; () if none of them exists."""
    nodes = [snapshot.nodes[name] for name in names if name in snapshot.nodes]
    hosts = sorted((host for node in nodes if (host := node.labels.get(HOSTNAME))), key=natural)
    unlabelled = sorted((node.name for node in nodes if not node.labels.get(HOSTNAME)), key=natural)
    labelled = [Requirement(HOSTNAME, "NotIn", tuple(hosts))] if hosts else []
    # core/v1 allows one name per field requirement.
    fields = (Requirement(NODE_NAME_FIELD, "NotIn", (name,)) for name in unlabelled)
    return (*labelled, *fields)
