"""Gangs whose members are several objects: one gang, of whatever kinds and in whatever order they come.

r1: a b c d (8 GPUs each)    r2: e f g h
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cluster.snapshot import Snapshot
from planner.model.reservation import Reservation
from tests.builders import cluster
from tests.policies.helpers import policies
from tests.webhook.workloads import objects as o
from webhook.admission.decision import Decision, decide
from webhook.admission.environment import Environment
from webhook.admission.ledger_steps import Reserve
from webhook.cli.decisions.mutate import decide_all
from webhook.cli.decisions.plan import plan_each
from webhook.files.reader import Document
from webhook.wire.request import from_object

GANG = "team/PodGroup/serve"
RACKS = "r1: a b c d\nr2: e f g h"
ROLE = "scheduling.run.ai/topology-role"


@dataclass(frozen=True)
class Member:
    """So many pods of a kind that play a role, each with these GPUs."""

    kind: str
    role: str
    count: int
    gpus: int

    def objects(self) -> list[Any]:
        """What is applied for it: one object, or as many pods."""
        template: Any = o.pod_template(self.gpus, limits={} if self.gpus else {"cpu": "2"})
        template["metadata"] = {"annotations": {"pod-group-name": "serve"}, "labels": {ROLE: self.role}}
        if self.kind == "Pod":
            return [
                with_name(o.obj("v1", "Pod", template["spec"]), f"{self.role}-{n}", template)
                for n in range(self.count)
            ]
        spec = _SPECS[self.kind](self.count, template)
        versions = {"Job": "batch/v1", "PyTorchJob": "kubeflow.org/v1", "JobSet": "jobset.x-k8s.io/v1alpha2"}
        return [with_name(o.obj(versions.get(self.kind, "apps/v1"), self.kind, spec), self.role)]


_SPECS = {
    "Job": lambda count, template: {"parallelism": count, "completions": count, "template": template},
    "Deployment": lambda count, template: {"replicas": count, "template": template},
    "StatefulSet": lambda count, template: {"replicas": count, "template": template},
    "PyTorchJob": lambda count, template: {
        "pytorchReplicaSpecs": {"Worker": {"replicas": count, "template": template}}
    },
    "JobSet": lambda count, template: {
        "replicatedJobs": [
            {"name": "w", "template": {"spec": _SPECS["Job"](count, template)}}
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


@settings(max_examples=40)
@given(
    members,
    st.sampled_from(["", "rack", "node"]),
    st.sampled_from(["v2", "v2alpha2", "native"]),
    st.integers(0, 2),
    st.randoms(use_true_random=False),
)
@pytest.mark.hypothesis
def test_the_files_of_a_gang_end_at_the_same_places_in_every_order(
    listed: list[Member], scope: str, version: str, unknown: int, random: Any
) -> None:
    """`bayplan plan` and `bayplan mutate` over all files, and each order of the files, agree on one place."""
    objects = [obj for member in listed for obj in member.objects()]
    pods = sum(member.count for member in listed)
    whole = [group(pods + unknown, scope, version), *objects]
    snapshot = cluster("r1: a b c d\nr2: e f\nr2: g h used=4")
    (answer,) = planned(snapshot, whole)
    assert answer.gang == GANG
    for _ in range(2):
        random.shuffle(whole)
        (again,) = planned(snapshot, whole)
        assert (again.decision, places(again.assignments)) == (answer.decision, places(answer.assignments))
    decisions = mutated(snapshot, whole)
    verdicts = {d.plan.decision for d in decisions if d.plan}
    assert verdicts == {answer.decision}
    reservation = held(decisions)
    if reservation is not None:
        assert places(reservation.assignments) == places(answer.assignments)
        assert reservation.domains == answer.reserves


def applied(snapshot: Snapshot, objects: list[Any]) -> tuple[Snapshot, list[Decision]]:
    """The cluster after the webhook was asked for one object after the other. It knows the PodGroup, and what
    the gang holds. A Deployment's and a StatefulSet's pods come by themselves."""
    of, *objects = objects
    decisions = []
    for obj in (part for whole in objects for part in stored(whole)):
        request = from_object(obj, uid=obj["metadata"]["name"])
        decision = decide(
            request,
            policies("node-affinity"),
            snapshot,
            "mutate",
            Environment(podgroups={("team", "serve"): of}),
        )
        for step in decision.steps:
            if isinstance(step, Reserve):
                snapshot = snapshot.with_reservation(step.reservation)
        decisions.append(decision)
    return snapshot, decisions


def stored(obj: Any) -> list[Any]:
    """What reaches the webhook of it: itself, or the pods that a set makes."""
    if obj["kind"] not in ("Deployment", "StatefulSet"):
        return [] if obj["kind"] == "PodGroup" else [obj]
    template, name = obj["spec"]["template"], obj["metadata"]["name"]
    pods = range(obj["spec"]["replicas"])
    return [with_name(o.obj("v1", "Pod", template["spec"]), f"{name}-{n}", template) for n in pods]


def seats(snapshot: Snapshot) -> Counter[tuple[str, str]]:
    """The seats that the gang holds, by PodSet and node."""
    held = snapshot.holding(GANG)
    return places(held.assignments if held else ())


def seats_of_members(seats: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Those of members that have come."""
    return Counter({seat: count for seat, count in seats.items() if seat[0] != "others"})


def on_nodes(seats: Counter[tuple[str, str]]) -> Counter[str]:
    """How many there are on each node."""
    return Counter(node for _, node in seats.elements())


@settings(max_examples=30)
@given(members, st.sampled_from(["", "rack"]), st.integers(0, 2), st.randoms(use_true_random=False))
@pytest.mark.hypothesis
def test_a_promise_is_kept_in_whatever_order_members_of_all_kinds_come(
    listed: list[Member], scope: str, unknown: int, random: Any
) -> None:
    """Nobody is refused for members that are not known, no seat moves, and all seats are in one rack."""
    pods = sum(member.count for member in listed)
    of = group(pods + unknown, scope)
    objects = [obj for member in listed for obj in member.objects()]
    random.shuffle(objects)
    snapshot = cluster("r1: a b c d\nr2: e f\nr2: g h used=4")
    before = seats(snapshot)
    for obj in (part for whole in objects for part in stored(whole)):
        snapshot, (decision,) = applied(snapshot, [of, obj])
        alone = planned(snapshot, [obj])[0]
        assert decision.response.allowed or alone.decision == "rejected", decision.response.message
        assert seats_of_members(before) <= seats(snapshot), "a member lost its seat"
        assert before.total() <= seats(snapshot).total(), "less room is kept than before"
        before = seats(snapshot)
    racks = {"r1" if node in "abcd" else "r2" for _, node in before}
    assert not scope or len(racks) <= 1


@settings(max_examples=30)
@given(
    members,
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from(["", "rack", "node"]),
    st.randoms(use_true_random=False),
)
@pytest.mark.hypothesis
def test_a_gang_of_alike_pods_has_its_places_from_the_first_member_on(
    listed: list[Member], gpus: int, scope: str, random: Any
) -> None:
    """Whichever member comes first, of whatever kind: they are those of `bayplan plan` over all files."""
    of = group(sum(member.count for member in listed), scope)
    objects = [obj for member in listed for obj in replace(member, gpus=gpus).objects()]
    random.shuffle(objects)
    snapshot = cluster("r1: a b c d\nr2: e f\nr2: g h used=4")
    (answer,) = planned(snapshot, [of, *objects])
    after, decisions = applied(snapshot, [of, *objects])
    if answer.decision == "admitted":
        assert {d.plan.decision for d in decisions if d.plan} == {"admitted"}
        assert on_nodes(seats(after)) == on_nodes(places(answer.assignments))


def room(listed: list[Member]) -> str:
    """What the gang states of its parts before they come: how many pods, and what each asks for."""
    return "; ".join(
        f"{member.count} {member.role}: {f'{o.GPU}={member.gpus}' if member.gpus else 'cpu=2'}"
        for member in listed
    )


@settings(max_examples=25)
@given(
    members.filter(lambda listed: any(member.gpus for member in listed)),
    st.sampled_from(["", "rack", "node"]),
    st.randoms(use_true_random=False),
)
@pytest.mark.hypothesis
def test_a_gang_that_states_its_parts_ends_where_all_files_together_do_in_every_order(
    listed: list[Member], scope: str, random: Any
) -> None:
    """Unlike members, of any kinds: each takes the seats of its part, kept from the first one on."""
    size = sum(member.count for member in listed)
    of = group(size, scope, **{"bayplan.dev/gang-resources": room(listed)})
    objects = [obj for member in listed for obj in member.objects()]
    snapshot = cluster("r1: a b c d\nr2: e f\nr2: g h used=4")
    (answer,) = planned(snapshot, [of, *objects])
    random.shuffle(objects)
    after, decisions = applied(snapshot, [of, *objects])
    if answer.decision == "admitted":
        assert {d.plan.decision for d in decisions if d.plan} == {"admitted"}
        assert seats(after) == places(answer.assignments)


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ("prefill: four GPUs", "is no list of amounts; write for example nvidia.com/gpu=4,cpu=8"),
        ("many prefill: cpu=1", '"many prefill: cpu=1" is no part of a gang; write for example 4 prefill:'),
        ("a: cpu=1; a: cpu=2", '"a: cpu=2" is no part of a gang'),
    ],
)
def test_parts_that_do_not_read_are_told_with_an_example(stated: str, words: str) -> None:
    """The entry is named, and what would be read."""
    of = group(3, "", **{"bayplan.dev/gang-resources": stated})
    _, (decision,) = applied(cluster(RACKS), [of, *Member("Pod", "prefill", 1, 8).objects()])
    assert words in decision.response.message


def test_a_job_a_deployment_and_a_pod_of_one_pod_group_are_one_gang_in_one_rack() -> None:
    """They were three gangs, each in a rack of its own choice."""
    serving = [
        Member("Job", "prefill", 2, 8),
        Member("Deployment", "decode", 2, 4),
        Member("Pod", "router", 1, 0),
    ]
    objects = [obj for member in serving for obj in member.objects()]
    (answer,) = planned(cluster(RACKS), [group(5, "rack"), *objects])
    parts = Counter(part for part, _ in places(answer.assignments).elements())
    assert (answer.gang, parts) == (GANG, {"prefill": 2, "decode": 2, "router": 1})
    assert len({"r1" if seat.node in "abcd" else "r2" for seat in answer.assignments}) == 1


def test_two_jobs_of_one_own_gang_are_planned_together() -> None:
    """`bayplan.dev/gang` joins them, since its size is more than each makes."""
    notes = {"bayplan.dev/gang": "pair", "bayplan.dev/gang-size": "4", "bayplan.dev/required-level": "rack"}
    spec = _SPECS["Job"](2, o.pod_template(8))
    jobs = [with_name(o.obj("batch/v1", "Job", spec, **notes), name) for name in ("left", "right")]
    (answer,) = planned(cluster(RACKS), jobs)
    assert (answer.gang, len(answer.assignments), answer.domain) == ("team/Gang/pair", 4, ("r1",))


@pytest.mark.parametrize(
    ("notes", "spec", "kept"),
    [
        ({}, {}, 8),
        ({"bayplan.dev/gang-resources": "nvidia.com/gpu=4,cpu=8"}, {}, 4),
        ({}, {"minResources": {"nvidia.com/gpu": "12"}}, 2),
    ],
    ids=["the largest that is known", "stated for each", "a share of what is stated for all"],
)
def test_a_member_that_is_not_known_keeps_room(notes: Any, spec: Any, kept: int) -> None:
    """Of three pods one has come: two seats are kept, of the size that is stated or seen."""
    of = group(3, "", **notes)
    of["spec"] |= spec
    after, _ = applied(cluster(RACKS), [of, *Member("Pod", "prefill", 1, 8).objects()])
    held = after.holding(GANG)
    assert held is not None
    assert (places(held.assignments).total(), dict(held.requests)["others"][o.GPU]) == (3, kept)


def test_amounts_that_are_no_list_are_told_with_an_example() -> None:
    """The field is named, and what would be read."""
    of = group(3, "", **{"bayplan.dev/gang-resources": "four GPUs"})
    _, (decision,) = applied(cluster(RACKS), [of, *Member("Pod", "prefill", 1, 8).objects()])
    assert "write for example nvidia.com/gpu=4,cpu=8" in decision.response.message


def test_two_members_of_one_role_are_not_given_one_seat() -> None:
    """Both prefill pods take a whole node; the second was sent to the first one's."""
    of = group(3, "", **{"bayplan.dev/reserve": "nodes"})
    after, decisions = applied(cluster(RACKS), [of, *Member("Pod", "prefill", 2, 8).objects()])
    assert len({node for part, node in seats(after) if part != "others"}) == 2
    first, second = (d.object["spec"]["affinity"] for d in decisions if d.object)
    assert first != second


def test_what_does_not_fit_beside_its_gang_waits() -> None:
    """Decode was promised half of the only node; prefill, which comes later, asks for a whole one."""
    of = group(2, "node")
    decode, prefill = Member("Pod", "decode", 1, 4), Member("Pod", "prefill", 1, 8)
    _, (first, second) = applied(cluster("r1: a"), [of, *decode.objects(), *prefill.objects()])
    assert [d.plan.decision for d in (first, second) if d.plan] == ["admitted", "queued"]
    assert "its gang holds a place" in " ".join(second.response.warnings)


def test_a_suspended_job_joins_when_it_is_resumed() -> None:
    """Its pods are not there yet: room is kept for them by their number."""
    suspended, pod = *Member("Job", "prefill", 2, 8).objects(), *Member("Pod", "router", 1, 1).objects()
    suspended["spec"]["suspend"] = True
    answers = planned(cluster(RACKS), [group(3, "rack"), suspended, pod])
    assert {part for part, _ in places(answers[-1].assignments)} == {"router", "others"}
