"""Reserved domains fenced by a taint: the nodes, the tolerations, and the effect on other taints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.manifests.node import node_from
from planner.model.errors import Where
from planner.model.reservation import reservation_id
from planner.model.schedulers import SchedulersSeen
from tests.builders import gang, racks
from tests.webhook.kube.worlds import booked
from webhook.admission.decision import decide
from webhook.admission.environment import Environment
from webhook.placement.planning import plan_workload
from webhook.placement.stamp import annotate
from webhook.placement.taints import (
    desired_taints,
    holder,
    keep_off_reserved,
    reserved_taint_value,
    taint_changes,
    taint_patch,
    toleration,
    with_tolerations,
)
from webhook.policy import load
from webhook.wire.request import from_object
from webhook.workloads import Workload, read

KEY = "bayplan.dev/reserved"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
OWN = {"key": "example.com/own", "effect": "NoSchedule"}


def test_the_nodes_of_a_domain_that_is_held_whole_are_wanted_and_no_others():
    """Two of three nodes are used; a gang that holds only what it uses fences nothing."""
    snapshot = booked(racks(2, 3), gang(2, name="ns/Job/a", required="rack"))
    assert desired_taints(snapshot) == dict.fromkeys(("r1-n1", "r1-n2", "r1-n3"), reservation_id("ns/Job/a"))
    assert desired_taints(booked(racks(2, 3), gang(2, required="rack", reserve="nodes"))) == {}


def test_only_what_differs_is_changed():
    """A wrong value is corrected, a missing taint added, another removed."""
    taints = {"n1": "a", "n2": "b", "n3": "", "n4": "old"}
    assert taint_changes(taints, {"n1": "a", "n2": "a", "n3": "a"}) == {"n2": "a", "n3": "a", "n4": ""}


def test_other_taints_stay_as_they_are():
    """Taints are one whole to the API server, so the patch names the version that was read."""
    ours = {"key": KEY, "value": "a", "effect": "NoSchedule"}
    assert taint_patch("7", [OWN], "a") == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"taints": [OWN, ours]},
    }
    assert taint_patch("8", [OWN, ours], "")["spec"] == {"taints": [OWN]}
    assert taint_patch("8", [ours], "")["spec"] == {"taints": None}
    assert (reserved_taint_value([OWN, ours]), reserved_taint_value([OWN])) == ("a", "")


def test_the_replicas_of_one_object_tolerate_the_same_taint():
    """A template is for all of them."""
    assert (
        holder("ns/LeaderWorkerSet/s/0")
        == holder("ns/LeaderWorkerSet/s/1")
        == reservation_id("ns/LeaderWorkerSet/s")
    )
    assert holder("ns/Job/s") != holder("ns/Job/t")


def test_a_toleration_is_added_once():
    """A second pass changes nothing."""
    held = booked(racks(1, 2), gang(2, name="ns/Job/a", required="rack")).reservations
    once = with_tolerations([OWN], held)
    assert once == [
        OWN,
        {"key": KEY, "operator": "Equal", "value": reservation_id("ns/Job/a"), "effect": "NoSchedule"},
    ]
    assert with_tolerations(once, held) == once


def test_a_pod_without_a_place_is_kept_off_what_others_hold_and_may_go_elsewhere():
    """The advised gang's pod goes beside the rack, as it was asked to; twice is as once."""
    snapshot = booked(racks(2, 2), gang(2, name="ns/Job/a", required="rack"))
    kept = keep_off_reserved({"spec": {}}, snapshot)
    (term,) = kept["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    off = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["r1-n1", "r1-n2"]}
    assert term == {"matchExpressions": [off]}
    assert keep_off_reserved(kept, snapshot) == kept
    assert keep_off_reserved({"spec": {}}, racks(2, 2)) == {"spec": {}}


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, False),
        ({"bayplan.dev/reserve": "none"}, True),
        ({"bayplan.dev/skip": "true"}, False),
    ],
)
def test_only_a_pod_that_is_pinned_nowhere_is_kept_off(change, kept):
    """A pinned pod needs no exclusion, and a pod with the skip annotation is not changed."""
    limits = {"nvidia.com/gpu": 8}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "annotations": change},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}]},
    }
    snapshot = booked(racks(2, 2), gang(2, name="ns/Job/a", required="rack"))
    decided = decide(from_object(body), load([]), snapshot, "mutate")
    assert decided.response.allowed, decided.response.message
    assert ("NotIn" in str(decided.object)) is kept


PINNED = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}
]}}}  # fmt: skip


@pytest.mark.parametrize(
    ("affinity", "kept"),
    [
        (PINNED, False),
        ({}, True),
        ({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
            *PINNED["nodeAffinity"][REQUIRED]["nodeSelectorTerms"],
            {"matchExpressions": [{"key": "rack", "operator": "Exists"}]},
        ]}}}, True),
    ],
    ids=["pinned", "free", "elsewhere too"],
)  # fmt: skip
def test_a_pod_that_its_template_pins_is_not_kept_off_its_own_place(affinity, kept):
    """Its gang's place was released and another gang came there: kept off that one too, the pod could go
    nowhere, after the other has ended as before (seen beside KAI, which had evicted it). The annotation alone
    pins a pod nowhere."""
    place = '{"decision":"admitted","domain":["r1"],"level":"rack","reserves":[["r1"]],"topology":"topo"}'
    limits = {"nvidia.com/gpu": 8}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p-0-abc",
            "namespace": "ns",
            "annotations": {
                "bayplan.dev/placement": place,
                "bayplan.dev/reservation": reservation_id("ns/Job/p"),
                "bayplan.dev/pod-set": "main",
                "batch.kubernetes.io/job-completion-index": "0",
            },
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "p", "uid": "1", "controller": True}
            ],
        },
        "spec": {
            "affinity": affinity,
            "containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}],
        },
    }
    snapshot = booked(racks(2, 2), gang(2, name="ns/Job/a", required="rack"))
    decided = decide(from_object(body), load([]), snapshot, "mutate")
    assert decided.response.allowed, decided.response.message
    assert ("NotIn" in str(decided.object)) is kept


def test_the_planner_does_not_see_our_own_taint():
    """The ledger says who has reserved the node."""
    item = {"metadata": {"name": "n"}, "spec": {"taints": [OWN, {"key": KEY, "effect": "NoSchedule"}]}}
    assert [taint.key for taint in node_from(item, Where()).taints] == ["example.com/own"]


@pytest.mark.parametrize("fenced", [True, False])
def test_a_pod_gets_its_toleration_when_it_comes_and_a_template_none(fenced):
    """Templates outlive the choice how domains are fenced; pods do not."""
    limits = {"nvidia.com/gpu": 8}
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": {"bayplan.dev/reserve": "domain"}},
        "spec": spec,
    }
    job = {
        **pod,
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {"template": {"spec": {**spec, "restartPolicy": "Never"}}},
    }
    stamped = {kind: stamped_with(body, fenced=fenced) for kind, body in (("Pod", pod), ("Job", job))}
    assert "tolerations" not in stamped["Job"]["spec"]["template"]["spec"]
    assert ("tolerations" in stamped["Pod"]["spec"]) is fenced


KUEUE = SchedulersSeen(
    {"kueue": "a kind"},
    {"kueue": frozenset({"ns/team"})},
    queue_topologies={"ns/team": frozenset({"racks"})},
)


def admitted(labels, *, fenced, **spec):
    """A Job as it is stored, in a cluster with a queue of Kueue's whose flavor has a topology."""
    limits = {"nvidia.com/gpu": 8}
    container = {"name": "c", "image": "i", "resources": {"limits": limits}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container], **spec}}
    size = {"parallelism": 2, "completions": 2, "completionMode": "Indexed"}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "p", "namespace": "ns", "labels": labels},
        "spec": {**size, "template": template},
    }
    snapshot = racks(2, 2)
    snapshot = replace(snapshot, base=replace(snapshot.base, schedulers=KUEUE))
    request = from_object(body, uid="uid")
    decided = decide(request, load([]), snapshot, "mutate", Environment(fenced=fenced))
    assert decided.response.allowed, decided.response.message
    return decided


@pytest.mark.parametrize(
    ("labels", "fenced", "own"),
    [
        ({"kueue.x-k8s.io/queue-name": "team"}, True, [OWN, toleration("ns/Job/p")]),
        ({"kueue.x-k8s.io/queue-name": "team"}, False, [OWN]),
        ({}, True, [OWN]),
    ],
    ids=["in Kueue's queue", "without a fence", "in no queue"],
)
def test_kueue_finds_the_gangs_toleration_on_the_suspended_template(labels, fenced, own):
    """Its Topology-Aware Scheduling looks there, and evicts what stands on a node whose taint it does not
    find tolerated; pods come later. It holds nothing, so nobody's fence waits for Kueue."""
    decided = admitted(labels, fenced=fenced, tolerations=[OWN])
    assert decided.object["spec"]["template"]["spec"]["tolerations"] == own
    held = [step for step in decided.steps if "Wish" in type(step).__name__]
    assert bool(held) is not bool(labels)


def test_a_template_that_tolerates_its_fence_stays_as_it_is():
    """A reinvocation writes nothing."""
    queue = {"kueue.x-k8s.io/queue-name": "team"}
    once = admitted(queue, fenced=True).object
    again = decide(
        from_object(once, uid="uid"),
        load([]),
        replace(racks(2, 2), base=replace(racks(2, 2).base, schedulers=KUEUE)),
        "mutate",
        Environment(fenced=True),
    )
    assert again.object["spec"]["template"]["spec"]["tolerations"] == [toleration("ns/Job/p")]


def stamped_with(body, *, fenced):
    """The object with its plan on two empty racks."""
    workload: Workload = read(body)
    plan = plan_workload(racks(2, 2), workload)
    return annotate(body, workload, plan, "p@1", fenced=fenced)
