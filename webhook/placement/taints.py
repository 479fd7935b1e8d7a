"""Reserved domains fenced: what keeps other pods out, and what lets a gang's own through. Pure.

By default a domain is fenced by affinity: every pod that asks for GPUs is planned and pinned to its place,
and one that is pinned nowhere is kept off what others hold when it comes. A taint keeps out all others too:
pods without a GPU, those that leave the plan (`bayplan.dev/skip`), and those that came before Bayplan.
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
from webhook.functions.node_affinity import require

Json = dict[str, Any]


EFFECT = "NoSchedule"


def holder(gang: str) -> str:
    """The taint's value: a digest of the object that the gang belongs to, the same for all its replicas."""
    return reservation_id("/".join(gang.split("/")[:3]))


def toleration(gang: str) -> Json:
    """What lets a gang's pods onto the nodes that it holds."""
    return {"key": RESERVED_TAINT, "operator": "Equal", "value": holder(gang), "effect": EFFECT}


def tolerant(stated: Iterable[Mapping[str, Any]] | None, held: Iterable[Reservation]) -> list[Json]:
    """A pod's tolerations, and those of its gang's domains; none twice."""
    known = [dict(one) for one in stated or ()]
    for one in held:
        own = toleration(one.gang)
        if one.mode == "domain" and own not in known:
            known.append(own)
    return known


def wanted(snapshot: Snapshot) -> dict[str, str]:
    """The taint's value for each node that a gang holds whole."""
    return {
        node: holder(held.gang)
        for held in snapshot.reservations
        if held.mode == "domain"
        for node in snapshot.held_nodes(held)
        if node in snapshot.nodes
    }


def changes(there: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """The nodes whose taint is not as it should be, with its value; "" is to be taken away."""
    put = {node: value for node, value in wanted.items() if there.get(node) != value}
    return put | {node: "" for node, value in there.items() if value and node not in wanted}


def fenced_by(taints: Iterable[Mapping[str, Any]]) -> str:
    """The value of our taint among a node's, "" without it."""
    return str(next((one.get("value", "") for one in taints if one.get("key") == RESERVED_TAINT), ""))


def patch(version: str, taints: Iterable[Mapping[str, Any]], value: str) -> Json:
    """The merge patch of a node as it was read: ours as it shall be, all other taints as they are.

    Its taints are one whole to the API server, so the patch holds for the version that was read.
    """
    others = [dict(one) for one in taints if one.get("key") != RESERVED_TAINT]
    own = [{"key": RESERVED_TAINT, "value": value, "effect": EFFECT}] if value else []
    return {"metadata": {"resourceVersion": version}, "spec": {"taints": [*others, *own] or None}}


def kept_off(pod: Mapping[str, Any], snapshot: Snapshot) -> Mapping[str, Any]:
    """A pod that no plan pins, required to stay off the nodes that gangs hold whole now."""
    spec = pod.get("spec")
    held = [snapshot.nodes[name] for name in snapshot.holders if name in snapshot.nodes]
    if not held or not isinstance(spec, Mapping):
        return pod
    hosts = sorted((host for node in held if (host := node.labels.get(HOSTNAME))), key=natural)
    named = sorted(node.name for node in held if not node.labels.get(HOSTNAME))
    labelled = [Requirement(HOSTNAME, "NotIn", tuple(hosts))] if hosts else []
    fields = (Requirement(NODE_NAME_FIELD, "NotIn", (name,)) for name in named)  # core/v1 takes one name each
    term = node_term_json((*labelled, *fields))
    return {**pod, "spec": {**spec, "affinity": require(spec.get("affinity"), [term])}}
