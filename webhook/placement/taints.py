"""The taint on reserved domains: keeps other pods off, and lets a gang's own pods on. Pure.

By default node affinity keeps a domain free: every pod with GPUs is planned and gets the affinity of its
place, and a pod without a place is kept off reserved nodes when it arrives. A taint also keeps off all other
pods: those without a GPU, those that opt out of planning (`bayplan.dev/skip`), and those that are older than
Bayplan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.manifests.requirements import node_term_json
from planner.model.labels import NODE_NAME_FIELD, RESERVED_TAINT, Requirement
from planner.model.natural_order import natural
from planner.model.reservation import Reservation, reservation_id
from planner.model.topology import HOSTNAME
from webhook.workloads.node_affinity import require

Json = dict[str, Any]


EFFECT = "NoSchedule"


def holder(gang: str) -> str:
    """Returns the taint's value: a digest of the object that the gang belongs to, equal for all its
    replicas."""
    return reservation_id("/".join(gang.split("/")[:3]))


def toleration(gang: str) -> Json:
    """Returns the toleration that lets a gang's pods onto the nodes that it holds."""
    return {"key": RESERVED_TAINT, "operator": "Equal", "value": holder(gang), "effect": EFFECT}


def with_tolerations(stated: Iterable[Mapping[str, Any]] | None, held: Iterable[Reservation]) -> list[Json]:
    """Returns a pod's tolerations and those for its gang's domains, each once."""
    tolerations = [dict(entry) for entry in stated or ()]
    for reservation in held:
        own = toleration(reservation.gang)
        if reservation.mode == "domain" and own not in tolerations:
            tolerations.append(own)
    return tolerations


def desired_taints(snapshot: Snapshot) -> dict[str, str]:
    """Returns the taint's value for each node that a gang holds whole."""
    return {
        node: holder(held.gang)
        for held in snapshot.reservations
        if held.mode == "domain"
        for node in snapshot.held_nodes(held)
        if node in snapshot.nodes
    }


def taint_changes(current: Mapping[str, str], desired: Mapping[str, str]) -> dict[str, str]:
    """Returns the nodes whose taint must change, with its new value; "" removes it."""
    put = {node: value for node, value in desired.items() if current.get(node) != value}
    return put | {node: "" for node, value in current.items() if value and node not in desired}


def reserved_taint_value(taints: Iterable[Mapping[str, Any]]) -> str:
    """Returns the value of our taint among a node's taints, "" if absent."""
    return str(next((taint.get("value", "") for taint in taints if taint.get("key") == RESERVED_TAINT), ""))


def taint_patch(version: str, taints: Iterable[Mapping[str, Any]], value: str) -> Json:
    """Returns the merge patch for a node: our taint as desired, all other taints unchanged.

    A merge patch replaces the whole list of taints, so it applies only to the version that was read."""
    others = [dict(taint) for taint in taints if taint.get("key") != RESERVED_TAINT]
    own = [{"key": RESERVED_TAINT, "value": value, "effect": EFFECT}] if value else []
    return {"metadata": {"resourceVersion": version}, "spec": {"taints": [*others, *own] or None}}


def keep_off_reserved(
    pod: Mapping[str, Any], snapshot: Snapshot, *, evicts: bool = False
) -> Mapping[str, Any]:
    """Returns a pod without a place, required to stay off the nodes that gangs hold whole now.

    `evicts`: only off nodes whose gang has not started. The scheduler may evict the pods of other gangs,
    whose taints the pod tolerates."""
    spec = pod.get("spec")
    running = [held for held in snapshot.reservations if evicts and snapshot.runs(held)]
    if running and isinstance(spec, Mapping):
        spec = {**spec, "tolerations": with_tolerations(spec.get("tolerations"), running)}
        pod = {**pod, "spec": spec}
    started = {held.gang for held in running}
    holders = (name for name, gang in snapshot.holders.items() if gang not in started)
    held = [snapshot.nodes[name] for name in holders if name in snapshot.nodes]
    if not held or not isinstance(spec, Mapping):
        return pod
    hosts = sorted((host for node in held if (host := node.labels.get(HOSTNAME))), key=natural)
    names = sorted(node.name for node in held if not node.labels.get(HOSTNAME))
    labelled = [Requirement(HOSTNAME, "NotIn", tuple(hosts))] if hosts else []
    # core/v1 allows one name per field requirement.
    fields = (Requirement(NODE_NAME_FIELD, "NotIn", (name,)) for name in names)
    term = node_term_json((*labelled, *fields))
    return {**pod, "spec": {**spec, "affinity": require(spec.get("affinity"), [term])}}
