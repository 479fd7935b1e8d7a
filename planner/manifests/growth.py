"""Reads node pools that may grow, from the objects of their autoscalers and from a parameter.

Sources: Karpenter's NodePool (`karpenter.sh/v1`); Cluster API's MachineDeployment with the Cluster
Autoscaler's annotations (`capacity.cluster-autoscaler.kubernetes.io/…`); the ConfigMap
`cluster-autoscaler-status`, in the format that it has since Kubernetes 1.30; the parameter `growing.pools`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from planner.manifests.fields import integer, mapping, maps, strings, text, texts, yaml_text
from planner.manifests.node import DEFAULT_PODS
from planner.model import quantity
from planner.model.errors import InputError, Where
from planner.model.growth import UNBOUNDED, AutoscalerGroup, GrowingPool
from planner.model.labels import Taint
from planner.model.resources import GPU, Resources

STATUS_CONFIG = "cluster-autoscaler-status"
"""The ConfigMap in which the Cluster Autoscaler reports its node groups."""

NODE_POOL_LABEL = "karpenter.sh/nodepool"
"""Karpenter's label for the nodes of a NodePool."""

_FREE = (
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "karpenter.",
)
"""Prefixes of labels whose value Karpenter chooses as the pods require, unless its NodePool
states the value.
"""

CAPACITY = {
    "cpu": "capacity.cluster-autoscaler.kubernetes.io/cpu",
    "memory": "capacity.cluster-autoscaler.kubernetes.io/memory",
    "ephemeral-storage": "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk",
    "pods": "capacity.cluster-autoscaler.kubernetes.io/maxPods",
    "GPUs": "capacity.cluster-autoscaler.kubernetes.io/gpu-count",
    "GPU resource": "capacity.cluster-autoscaler.kubernetes.io/gpu-type",
    "labels": "capacity.cluster-autoscaler.kubernetes.io/labels",
    "taints": "capacity.cluster-autoscaler.kubernetes.io/taints",
}
"""The annotations that state the resources of a MachineDeployment's nodes."""

MOST_NODES = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
"""The annotation that states the maximum size of a MachineDeployment."""


def pool_from(item: Mapping[str, object], where: Where) -> GrowingPool | None:
    """Returns the pool of a NodePool or MachineDeployment; None if it cannot grow. Raises `InputError`."""
    return _node_pool(item, where) if item["kind"] == "NodePool" else _machine_deployment(item, where)


def _node_pool(item: Mapping[str, object], where: Where) -> GrowingPool:
    """Returns the pool of a Karpenter NodePool. A NodePool does not state which instance type a new node
    gets, so the resources of a node are unknown.
    """
    name = str(mapping(item.get("metadata"), where.at_path("metadata"))["name"])
    spec, status = (
        mapping(item.get("spec"), where.at_path("spec")),
        mapping(item.get("status"), where.at_path("status")),
    )
    place = where.at_path("spec.template")
    template = mapping(spec.get("template"), place)
    metadata = mapping(template.get("metadata"), place.below("metadata"))
    inner, spec_place = mapping(template.get("spec"), place.below("spec")), place.below("spec")
    labels = {**texts(metadata.get("labels"), place.below("metadata.labels")), NODE_POOL_LABEL: name}
    choices: dict[str, tuple[str, ...]] = {}
    for index, entry in enumerate(maps(inner.get("requirements"), spec_place.below("requirements"))):
        key = text(entry.get("key"), spec_place.below(f"requirements[{index}].key"))
        values = strings(entry.get("values"), spec_place.below(f"requirements[{index}].values"))
        # Other operators than In are not evaluated: () stands for any value.
        choices[key] = values if entry.get("operator") == "In" else ()
    stated = quantity.amounts(spec.get("limits"), where.at_path("spec.limits"), up=False)
    used = quantity.amounts(status.get("resources"), where.at_path("status.resources"), up=True)
    return GrowingPool(
        name=name,
        present=used.get("nodes", 0),
        max_added=max(0, stated.pop("nodes", UNBOUNDED) - used.get("nodes", 0)),
        labels=labels,
        taints=_taints(inner.get("taints"), spec_place.below("taints")),
        choices=choices,
        free=_FREE,
        limits={resource: max(0, amount - used.get(resource, 0)) for resource, amount in stated.items()},
    )


def _machine_deployment(item: Mapping[str, object], where: Where) -> GrowingPool | None:
    """Returns the pool of a MachineDeployment that the Cluster Autoscaler may enlarge, or None
    for any other.
    """
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    annotations = texts(metadata.get("annotations"), where.at_path("metadata.annotations"))
    if MOST_NODES not in annotations:
        return None
    annotations_place = where.at_path("metadata.annotations")
    replicas = integer(
        mapping(item.get("spec"), where.at_path("spec")).get("replicas"), where.at_path("spec.replicas")
    )
    max_nodes = _number(annotations[MOST_NODES], annotations_place.below(MOST_NODES))
    capacities = {resource: annotations[key] for resource, key in CAPACITY.items() if key in annotations}
    plain = ("cpu", "memory", "ephemeral-storage", "pods")
    amounts: dict[str, str] = {resource: capacities[resource] for resource in plain if resource in capacities}
    if "GPUs" in capacities:
        amounts[capacities.get("GPU resource", GPU)] = capacities["GPUs"]
    capacity: Resources | None = None
    if "cpu" in amounts and "memory" in amounts:
        capacity = {"pods": DEFAULT_PODS, **quantity.amounts(amounts, annotations_place, up=False)}
    return GrowingPool(
        name=str(metadata["name"]),
        present=replicas,
        max_added=max(0, max_nodes - replicas),
        labels=dict(_pair(entry, annotations_place) for entry in _entries(capacities.get("labels", ""))),
        taints=tuple(_taint(entry, annotations_place) for entry in _entries(capacities.get("taints", ""))),
        capacity=capacity,
    )


def status_groups(item: Mapping[str, object], where: Where) -> tuple[AutoscalerGroup, ...]:
    """Returns the node groups in the Cluster Autoscaler's status; none if it is not YAML. Raises
    `InputError`.
    """
    place = where.at_path("data[status]")
    content = text(mapping(item.get("data"), where.at_path("data")).get("status"), place)
    try:
        status = yaml_text(content, place)
    except InputError:  # before 1.30 the status was plain text
        return ()
    if not isinstance(status, Mapping):
        return ()
    groups = []
    for group in maps(status.get("nodeGroups"), place):
        health = mapping(group.get("health"), place)
        target, max_size = (integer(health.get(key), place) for key in ("cloudProviderTarget", "maxSize"))
        groups.append(AutoscalerGroup(text(group.get("name"), place), target, max_size))
    return tuple(groups)


def condensed(item: Mapping[str, object], where: Where) -> dict[str, object]:
    """Returns the status ConfigMap with only the fields that `status_groups` reads. Raises `InputError`.

    The result changes only when a group changes, whereas the autoscaler rewrites the object every ten
    seconds.
    """
    groups = [
        {"name": group.name, "health": {"cloudProviderTarget": group.present, "maxSize": group.max_size}}
        for group in status_groups(item, where)
    ]
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    kept = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    return {**item, "metadata": kept, "data": {"status": json.dumps({"nodeGroups": groups})}}


def pools_from_text(stated: str, where: Where) -> tuple[GrowingPool, ...]:
    """Returns the pools of the parameter `growing.pools`, which has one line for each pool:

        h100: nodes=16 nvidia.com/gpu=8 cpu=192 memory=2Ti label:pool=h100 taint:nvidia.com/gpu:NoSchedule

    `nodes`: how many nodes may be added; if missing, any number. Raises `InputError`, which names the pool.
    """
    pools = []
    for line in filter(None, map(str.strip, stated.splitlines())):
        name, colon, rest = line.partition(":")
        if not colon or not name.strip() or " " in name.strip():
            raise InputError(f"{line[:40]!r} is no pool; write NAME: RESOURCE=AMOUNT …", where)
        pools.append(_pool(name.strip(), rest.split(), where.below(f"[{name.strip()}]")))
    return tuple(pools)


def _pool(name: str, words: list[str], where: Where) -> GrowingPool:
    labels, taints, amounts, max_added = dict[str, str](), [], dict[str, str](), UNBOUNDED
    for word in words:
        if word.startswith("label:"):
            key, value = _pair(word.removeprefix("label:"), where)
            labels[key] = value
        elif word.startswith("taint:"):
            taints.append(_taint(word.removeprefix("taint:"), where))
        else:
            key, value = _pair(word, where)
            if key == "nodes":
                max_added = _number(value, where)
            else:
                amounts[key] = value
    capacity = {"pods": DEFAULT_PODS, **quantity.amounts(amounts, where, up=False)} if amounts else None
    return GrowingPool(name, max_added, labels=labels, taints=tuple(taints), capacity=capacity)


def _entries(stated: str) -> list[str]:
    return [entry.strip() for entry in stated.split(",") if entry.strip()]


def _pair(stated: str, where: Where) -> tuple[str, str]:
    key, equals, value = stated.partition("=")
    if not key or not equals:
        raise InputError(f"{stated!r} is no pair; write KEY=VALUE", where)
    return key, value


def _taint(stated: str, where: Where) -> Taint:
    """Parses `KEY=VALUE:EFFECT` or `KEY:EFFECT`. Raises `InputError`."""
    name, colon, effect = stated.rpartition(":")
    if not colon or effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
        raise InputError(f"{stated!r} is no taint; write KEY=VALUE:NoSchedule", where)
    key, _, value = name.partition("=")
    return Taint(key, value, effect)


def _taints(stated: object, where: Where) -> tuple[Taint, ...]:
    return tuple(
        Taint(
            *(text(taint.get(part), where.below(f"[{index}].{part}")) for part in ("key", "value", "effect"))
        )
        for index, taint in enumerate(maps(stated, where))
    )


def _number(stated: str, where: Where) -> int:
    if not (stated.isascii() and stated.isdecimal() and len(stated) < 10):
        raise InputError(f"expected a whole number, found {stated[:40]!r}", where)
    return int(stated)
