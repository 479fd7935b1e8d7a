"""Reads a Node object: labels, taints, allocatable amounts and conditions."""

from __future__ import annotations

from collections.abc import Mapping

from planner.manifests.fields import mapping, maps, text, texts
from planner.manifests.numa import check_labels
from planner.model import quantity
from planner.model.errors import Where
from planner.model.labels import RESERVED_TAINT, Taint
from planner.model.node import Node
from planner.model.resources import MIG_PREFIX, MIG_STATE_LABEL

DEFAULT_PODS = 110
"""The kubelet's default of `maxPods`, for a node that does not state how many pods it takes."""


def node_from(item: Mapping[str, object], where: Where) -> Node:
    """Returns a node; without a pod limit it gets the kubelet's default, 110.

    While MIG manager changes the node's GPUs (its state label is not "success"), the MIG devices are
    `pending` instead of allocatable. Raises `InputError` for malformed labels, taints, conditions or
    quantities.
    """
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    spec = mapping(item.get("spec"), where.at_path("spec"))
    status = mapping(item.get("status"), where.at_path("status"))
    labels = texts(metadata.get("labels"), where.at_path("metadata.labels"))
    check_labels(labels, where)
    offers = "allocatable" if status.get("allocatable") is not None else "capacity"
    amounts = quantity.amounts(status.get(offers), where.at_path(f"status.{offers}"), up=False)
    amounts.setdefault("pods", DEFAULT_PODS)
    settled = labels.get(MIG_STATE_LABEL, "success") == "success"
    pending = {} if settled else {k: v for k, v in amounts.items() if k.startswith(MIG_PREFIX)}
    return Node(
        name=text(metadata.get("name"), where.at_path("metadata.name")),
        labels=labels,
        allocatable={k: v for k, v in amounts.items() if k not in pending},
        taints=_taints(spec, where),
        cordoned=spec.get("unschedulable") is True,
        ready=_ready(status, where),
        pending=pending,
    )


def _taints(spec: Mapping[str, object], where: Where) -> tuple[Taint, ...]:
    result: list[Taint] = []
    for index, taint in enumerate(maps(spec.get("taints"), where.at_path("spec.taints"))):
        place = where.at_path(f"spec.taints[{index}]")
        effect = text(taint.get("effect"), place)
        result.append(Taint(text(taint.get("key"), place), text(taint.get("value"), place), effect))
    # Reservations have the same information as Bayplan's own taint, and exempt the gang that holds the node.
    return tuple(taint for taint in result if taint.key != RESERVED_TAINT)


def _ready(status: Mapping[str, object], where: Where) -> bool:
    conditions = maps(status.get("conditions"), where.at_path("status.conditions"))
    return all(c.get("status") == "True" for c in conditions if c.get("type") == "Ready")
