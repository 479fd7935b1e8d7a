"""Nodes and the pods bound to them, as the planner sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.model.claim_spec import ClaimUse
from planner.model.labels import Taint
from planner.model.pod import Alignment, PodTerm
from planner.model.quantity import Resources

DEFAULT_SCHEDULER = "default-scheduler"
"""The scheduler of a pod that names none."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node: labels, taints, allocatable amounts (base units) and whether it takes pods now."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Resources = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    cordoned: bool = False
    ready: bool = True
    pending: Resources = field(default_factory=dict)
    """What it will give besides, once a MIG reconfiguration that is under way has succeeded."""


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod that uses capacity on a node: NAMESPACE/NAME, its node, its effective request.

    `reservation`: the id (annotation `bayplan.dev/reservation`) of the reservation that covers it, "" for
    pods of other workloads. `daemon`: a DaemonSet's pod; every node has it, so it does not make a domain
    opened. `alignment`: what the kubelet aligned for it; None where only the sum is known. `terms`: its
    required anti-affinity, which keeps other pods away.
    """

    name: str
    node: str
    requests: Resources
    reservation: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    daemon: bool = False
    alignment: Alignment | None = None
    terms: tuple[PodTerm, ...] = ()
    gpu_groups: tuple[str, ...] = ()
    """The GPUs that it shares with other pods, by KAI's names for them (`planner.node.gpu_sharing`)."""
    claims: tuple[ClaimUse, ...] = ()
    """The device claims that it names, whose devices are not among its requests."""
    extended_claim: str = ""
    """The claim that the scheduler made for its extended resources, "" for none."""
    scheduling_group: str = ""
    """The PodGroup of Kubernetes' own that it belongs to (`spec.schedulingGroup`), "" for none."""
    scheduler: str = ""
    """Its scheduler, where it belongs to such a group."""
