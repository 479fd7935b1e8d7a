"""Gangs whose members are several objects, as they stand in files, and as the webhook is asked for them.

r1: a b c d (8 GPUs each)    r2: e f g h
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from planner.cluster.snapshot import Snapshot
from planner.ledger.conflicts import Wish
from planner.model.reservation import Reservation
from tests.policies.helpers import policies
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment
from webhook.cli.decisions.mutate import decide_all
from webhook.cli.decisions.plan import plan_each
from webhook.files.reader import Document
from webhook.wire.request import from_object

GANG = "team/PodGroup/serve"
RACKS = "r1: a b c d\nr2: e f g h"
ROLE = "scheduling.run.ai/topology-role"
IN_GROUP: Mapping[str, str] = {"pod-group-name": "serve"}
"""By which a member names its PodGroup."""


@dataclass(frozen=True)
class Member:
    """So many pods of a kind that play a role, each with these GPUs."""

    kind: str
    role: str
    count: int
    gpus: int

    def objects(self, notes: Mapping[str, str] = IN_GROUP) -> list[Any]:
        """What is applied for it: one object, or as many pods; `notes` name the gang."""
        template: Any = o.pod_template(self.gpus, limits={} if self.gpus else {"cpu": "2"})
        template["metadata"] = {"annotations": dict(notes), "labels": {ROLE: self.role}}
        if self.kind == "Pod":
            return [
                with_name(o.obj("v1", "Pod", template["spec"]), f"{self.role}-{n}", template)
                for n in range(self.count)
            ]
        spec = SPECS[self.kind](self.count, template)
        versions = {"Job": "batch/v1", "PyTorchJob": "kubeflow.org/v1", "JobSet": "jobset.x-k8s.io/v1alpha2"}
        return [with_name(o.obj(versions.get(self.kind, "apps/v1"), self.kind, spec), self.role)]


SPECS = {
    "Job": lambda count, template: {"parallelism": count, "completions": count, "template": template},
    "Deployment": lambda count, template: {"replicas": count, "template": template},
    "StatefulSet": lambda count, template: {"replicas": count, "template": template},
    "PyTorchJob": lambda count, template: {
        "pytorchReplicaSpecs": {"Worker": {"replicas": count, "template": template}}
    },
    "JobSet": lambda count, template: {
        "replicatedJobs": [
            {"name": "w", "template": {"spec": SPECS["Job"](count, template)}}
        ]
    },
}  # fmt: skip


def with_name(obj: Any, name: str, like: Any = None) -> Any:
    """The object of that name, with the metadata of `like` besides."""
    obj["metadata"] = {**((like or {}).get("metadata") or {}), **obj["metadata"], "name": name}
    return obj


def group(size: int, scope: str = "", version: str = "v2alpha2", **notes: str) -> Any:
    """The PodGroup that the members name, in one of the ways of saying it."""
    spec: Any = {"minMember": size}
    if scope and version == "v2":
        spec["topologyPolicy"] = {"scope": scope}
    elif scope:
        level = {"rack": "rack", "node": "kubernetes.io/hostname"}[scope]
        spec["topologyConstraint"] = {"requiredTopologyLevel": level}
    api = f"scheduling.run.ai/{version}"
    if version == "native":
        api, spec = "scheduling.k8s.io/v1alpha2", {"schedulingPolicy": {"gang": {"minCount": size}}}
    manifest = with_name(o.obj(api, "PodGroup", spec), "serve")
    manifest["metadata"]["annotations"] = notes
    return manifest


def documents(objects: list[Any]) -> list[Document]:
    """The objects as they stand in files."""
    return [Document("gang.yaml", place, obj) for place, obj in enumerate(objects)]


def planned(snapshot: Snapshot, objects: list[Any]) -> list[Any]:
    """The answers of `bayplan plan` over all files."""
    return [gang.answer for gang in plan_each(snapshot, documents(objects), None, Environment())]


def mutated(snapshot: Snapshot, objects: list[Any]) -> list[Any]:
    """The decisions of `bayplan mutate` over all files."""
    return [
        outcome.decision
        for outcome in decide_all(policies("node-affinity"), snapshot, documents(objects), Environment())
    ]


def places(assignments: Any) -> Counter[tuple[str, str]]:
    """How many pods of each PodSet are on each node."""
    return Counter({(a.pod_set, a.node): a.count for a in assignments})


def held(decisions: list[Any]) -> Reservation | None:
    """What the gang holds after all of them."""
    reservations = [r for d in decisions if d.plan for r in d.plan.reservations if r.gang == GANG]
    return reservations[-1] if reservations else None


members = st.lists(
    st.builds(
        Member,
        st.sampled_from(["Pod", "Job", "Deployment", "StatefulSet", "PyTorchJob", "JobSet"]),
        st.sampled_from(["prefill", "decode", "router", "encode"]),
        st.integers(1, 3),
        st.sampled_from([0, 1, 2, 4, 8]),
    ),
    min_size=2,
    max_size=4,
    unique_by=lambda member: member.role,
)  # fmt: skip


def applied(snapshot: Snapshot, objects: list[Any]) -> tuple[Snapshot, list[Decision]]:
    """The cluster after the webhook was asked for one object after the other. It knows the PodGroup, and what
    the gang holds. A Deployment's and a StatefulSet's pods come by themselves."""
    environment = surroundings(objects)
    decisions = []
    for obj in (part for whole in objects for part in stored(whole)):
        decision = asked(snapshot, obj, environment)
        for reservation in reserved(decision):
            snapshot = snapshot.with_reservation(reservation)
        decisions.append(decision)
    return snapshot, decisions


def rehearsed(snapshot: Snapshot, objects: list[Any], obj: Any) -> Counter[tuple[str, str]]:
    """The seats that a dry run of one of the objects tells of: of its own pods, and of those not here yet."""
    decision = asked(snapshot, stored(obj)[0], surroundings(objects), dry_run=True)
    return places(seat for reservation in reserved(decision) for seat in reservation.assignments)


def surroundings(objects: list[Any]) -> Environment:
    """What the webhook knows beside the snapshot: the PodGroup, where there is one."""
    groups = [obj for obj in objects if obj["kind"] == "PodGroup"]
    return Environment(podgroups={("team", obj["metadata"]["name"]): obj for obj in groups})


def asked(snapshot: Snapshot, obj: Any, environment: Environment, *, dry_run: bool = False) -> Decision:
    """The webhook's answer for one object."""
    request = from_object(obj, uid=obj["metadata"]["name"], dry_run=dry_run)
    return decide(request, policies("node-affinity"), snapshot, "mutate", environment)


def reserved(decision: Decision) -> list[Reservation]:
    """What a decision reserves."""
    return [step.reservation for step in decision.steps if isinstance(step, Wish)]


def stored(obj: Any) -> list[Any]:
    """What reaches the webhook of it: itself, or the pods that a set makes."""
    if obj["kind"] not in ("Deployment", "StatefulSet"):
        return [] if obj["kind"] == "PodGroup" else [obj]
    template, name = obj["spec"]["template"], obj["metadata"]["name"]
    pods = range(obj["spec"]["replicas"])
    return [with_name(o.obj("v1", "Pod", template["spec"]), f"{name}-{n}", template) for n in pods]


def seats(snapshot: Snapshot, gang: str = GANG) -> Counter[tuple[str, str]]:
    """The seats that the gang holds, by PodSet and node."""
    held = snapshot.holding(gang)
    return places(held.assignments if held else ())


def seats_of_members(seats: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Those of members that have come."""
    return Counter({seat: count for seat, count in seats.items() if seat[0] != "others"})


def on_nodes(seats: Counter[tuple[str, str]]) -> Counter[str]:
    """How many there are on each node."""
    return Counter(node for _, node in seats.elements())
