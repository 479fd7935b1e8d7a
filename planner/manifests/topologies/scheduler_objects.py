"""Proposes the objects that a scheduling system needs for these nodes: the output of `bayplan generate`.

For KAI its Topology and Queues; for Kueue its Topology, ResourceFlavor and queues; for NVLink domains over
several hosts a ComputeDomain. Each object comes with notes for the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.manifests.topologies.label_presets import NODE_POOL
from planner.manifests.topologies.proposal import API_VERSIONS, Proposal, topology_manifest
from planner.model.natural_order import natural
from planner.model.node import Node
from planner.model.quantity import show
from planner.model.resources import CLIQUE_LABEL, GPU, PRESENT_LABEL, PRODUCT_LABEL
from planner.model.topology import HOSTNAME
from planner.model.words import counted

Json = dict[str, object]

KUEUE = "kueue.x-k8s.io"
KUEUE_VERSIONS = ("v1beta2", "v1beta1")
"""The API versions of the Kueue objects, with the same fields: v1beta2 since Kueue 0.15, v1beta1 (since
deprecated) from 0.14 on.
"""


PARENT = "default-parent-queue"
"""The parent of the proposed Queues, named as in KAI's quick start."""


UNLIMITED = -1
"""KAI's value for a quota or limit that is not set."""


FLAVOR_LABELS = (NODE_POOL, PRODUCT_LABEL, PRESENT_LABEL)
"""Labels that are preferred as the node labels of a ResourceFlavor."""


NOT_OF_FLAVORS = ("pods", "ephemeral-storage")
"""Resources of nodes that get no quota in the ClusterQueue."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """A proposed object, and notes for the user."""

    manifest: Json
    notes: tuple[str, ...] = ()


def kai_objects(
    proposals: Sequence[Proposal], queues: Mapping[str, float | None], nodes: Iterable[Node]
) -> list[Proposed]:
    """Returns a Topology for each group of nodes, a parent Queue, and a Queue in it for each name in
    `queues`.

    `queues`: the GPU quota by queue name, None for no bound.
    """
    promised = sum(gpus or 0 for gpus in queues.values())
    total = sum(node.allocatable.get(GPU, 0) for node in nodes)
    notes = [f"{promised:g} GPUs are promised, and the nodes have {total}"] if promised > total else []
    parent = Proposed(_queue(PARENT, None), tuple(notes))
    leaves = [Proposed(_queue(name, gpus, PARENT)) for name, gpus in queues.items()]
    return [*(_topology(proposal, "kai") for proposal in proposals), parent, *leaves]


def _topology(proposal: Proposal, kind: str) -> Proposed:
    notes = (proposal.summary, *proposal.notes)
    return Proposed(topology_manifest(proposal.topology, kind), notes)


def _queue(name: str, gpus: float | None, parent: str = "") -> Json:
    quotas = {"cpu": UNLIMITED, "memory": UNLIMITED, "gpu": UNLIMITED if gpus is None else gpus}
    spec: Json = {"parentQueue": parent} if parent else {}
    spec["resources"] = {
        name: {"quota": quota, "limit": UNLIMITED, "overQuotaWeight": 1} for name, quota in quotas.items()
    }
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def kueue_objects(
    proposals: Sequence[Proposal],
    queue: str,
    namespaces: Sequence[str],
    nodes: Sequence[Node],
    version: str,
) -> list[Proposed]:
    """Returns Kueue objects in one of `KUEUE_VERSIONS`.

    These are a Topology and a ResourceFlavor for each group of nodes, one ClusterQueue with their resources
    as its quota, and a LocalQueue in each namespace.
    """
    objects: list[Proposed] = []
    flavors: dict[str, Mapping[str, int]] = {}
    for proposal in proposals:
        objects += [_topology(proposal, "kueue"), _flavor(proposal, nodes)]
        flavors[proposal.topology.name] = _amounts(proposal.members)
    objects.append(_cluster_queue(queue, flavors))
    for namespace in namespaces:
        head = {"name": queue, "namespace": namespace}
        objects.append(Proposed(_kueue("LocalQueue", head, {"clusterQueue": queue})))
    return [replace(row, manifest={**row.manifest, "apiVersion": f"{KUEUE}/{version}"}) for row in objects]


def _kueue(kind: str, metadata: Mapping[str, str], spec: Json) -> Json:
    return {"apiVersion": API_VERSIONS["kueue"], "kind": kind, "metadata": dict(metadata), "spec": spec}


def _flavor(proposal: Proposal, nodes: Sequence[Node]) -> Proposed:
    """Returns the ResourceFlavor for the nodes of a topology. It selects these nodes by a label."""
    labels, notes = _own_labels(proposal, nodes)
    spec: Json = {"nodeLabels": labels, "topologyName": proposal.topology.name}
    return Proposed(_kueue("ResourceFlavor", {"name": proposal.topology.name}, spec), notes)


def _own_labels(proposal: Proposal, nodes: Sequence[Node]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Returns labels that all nodes of a proposal and no other nodes have: the topology's node selector, or
    one shared label, without notes. If there is none, returns a node-pool label, and a note that tells the
    user to add this label to the nodes.
    """
    if proposal.topology.node_selector:
        return dict(proposal.topology.node_selector), ()
    names = {node.name for node in proposal.members}
    outsiders = [node for node in nodes if node.name not in names]
    shared = set.intersection(*(set(node.labels.items()) for node in proposal.members))
    ordered = sorted(shared, key=_preference)
    for key, value in ordered:
        if key != HOSTNAME and not any(node.labels.get(key) == value for node in outsiders):
            return {key: value}, ()
    pair = f"{NODE_POOL}={proposal.topology.name}"
    note = f"no label is on all {len(names)} nodes and on no other; kubectl label nodes NAME… {pair}"
    return {NODE_POOL: proposal.topology.name}, (note,)


def _preference(label: tuple[str, str]) -> tuple[int, object]:
    key, _ = label
    return FLAVOR_LABELS.index(key) if key in FLAVOR_LABELS else len(FLAVOR_LABELS), natural(key)


def _amounts(nodes: Iterable[Node]) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for node in nodes:
        for name, amount in node.allocatable.items():
            if name not in NOT_OF_FLAVORS and not name.startswith("hugepages-"):
                total[name] = total.get(name, 0) + amount
    return total


def _cluster_queue(name: str, flavors: Mapping[str, Mapping[str, int]]) -> Proposed:
    """Returns a ClusterQueue whose quota is the allocatable amount of each flavor's nodes."""
    resources = sorted({resource for amounts in flavors.values() for resource in amounts}, key=natural)
    quotas = [
        {
            "name": flavor,
            "resources": [
                {"name": resource, "nominalQuota": _quota(resource, amounts.get(resource, 0))}
                for resource in resources
            ],
        }
        for flavor, amounts in flavors.items()
    ]
    group = {"coveredResources": resources, "flavors": quotas}
    spec: Json = {"namespaceSelector": {}, "resourceGroups": [group]}
    return Proposed(
        _kueue("ClusterQueue", {"name": name}, spec),
        ("its quota is all that the nodes can give; what runs there beside Kueue is to be taken off",),
    )


def _quota(resource: str, amount: int) -> str:
    """Returns the amount as a quantity, with memory rounded down to whole GiB."""
    return show(resource, amount // 2**30 * 2**30 if resource == "memory" else amount)


def compute_domain(name: str, namespace: str, nodes: Iterable[Node] | None) -> Proposed:
    """Returns a ComputeDomain. Pods claim its channel by the ResourceClaimTemplate NAME-channel.

    `nodes`: the cluster's nodes, whose NVLink cliques a note counts; None if unknown.
    """
    template = f"{name}-channel"
    notes = [
        f"pods claim it: resourceClaims: [{{name: channel, resourceClaimTemplateName: {template}}}]",
        "and in each container that uses GPUs: resources: {claims: [{name: channel}]}",
    ]
    if nodes is not None:
        cliques = {node.labels[CLIQUE_LABEL] for node in nodes if node.labels.get(CLIQUE_LABEL)}
        found_words = counted(len(cliques), "NVLink clique") if cliques else f"no node has {CLIQUE_LABEL}"
        notes.insert(0, found_words)
    spec: Json = {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": template}}}
    head = {"name": name, "namespace": namespace}
    manifest = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": head}
    return Proposed({**manifest, "spec": spec}, tuple(notes))
