"""A decision is the same whatever came before, although equal objects share outcomes of policies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.snapshot import Snapshot
from planner.model.reservation import Reservation
from tests.builders import racks
from tests.webhook.admission.test_growth_of_work import ENVIRONMENT, POLICIES
from tests.webhook.policy.helpers import OURS, evaluations, loaded, mutating, patch
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision, Phase
from webhook.admission.environment import Environment
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import from_object, namespace_named

Json = dict[str, Any]

RESOURCES = (
    {"limits": {"nvidia.com/gpu": 1}},
    {"limits": {"nvidia.com/gpu": 8}},
    {"limits": {"nvidia.com/gpu": 1, "cpu": "4"}, "requests": {"cpu": "2"}},
    {"limits": {"nvidia.com/gpu": 9}},
    {"limits": {"nvidia.com/mig-1g.10gb": 2}},
    {"requests": {"cpu": "1"}},
)
ANNOTATIONS: tuple[Mapping[str, str], ...] = (
    {},
    {},
    {"bayplan.dev/required": "rack"},
    {"bayplan.dev/reserve": "domain"},
    {"kai.scheduler/topology": "default", "kai.scheduler/topology-preferred-placement": "rack"},
    {"kai.schedular/topology": "default"},
    {"bayplan.dev/reserve": "none", "note": "mine"},
)
LABELS: tuple[Mapping[str, Any], ...] = (
    {}, {}, {"kai.scheduler/queue": "team"}, {"team": "a"}, {"team": "b"}, {"team": 1}
)  # fmt: skip
RUNS: tuple[Mapping[str, Any], ...] = (
    {"image": "trainer"},
    {"image": "trainer:1", "args": ["--seed", "1"]},
    {"image": "trainer:2", "args": ["--seed", "2"]},
    {"image": "trainer", "env": [{"name": "NCCL_DEBUG", "value": "LOUD"}]},
    {"image": "trainer:1", "env": [{"name": "SEED", "value": "1"}]},
    {"image": "trainer:1", "imagePullPolicy": "Always", "env": "no list"},
    {"image": 5, "args": None},
)
SPECS: tuple[Mapping[str, Any], ...] = (
    {},
    {},
    {"hostNetwork": True},
    {"schedulerName": "volcano"},
    {"nodeSelector": {"kubernetes.io/hostname": "r1-n1"}},
)


@st.composite
def objects(draw: st.DrawFn) -> Json:
    """A pod, a Job or a JobSet without a name; with few choices, so that many are equal."""
    container = {"name": "main", "resources": draw(st.sampled_from(RESOURCES)), **draw(st.sampled_from(RUNS))}
    metadata = {"labels": draw(st.sampled_from(LABELS)), "annotations": draw(st.sampled_from(ANNOTATIONS))}
    spec = {"containers": [container], **draw(st.sampled_from(SPECS))}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    make: Callable[[Json], Json] = draw(st.sampled_from((dict, of_indexed_job, a_job, a_job_set)))
    return make(pod)


def a_job(pod: Json) -> Json:
    """A Job of two such pods; half of what is written onto it is on its template."""
    template = {
        "metadata": {"labels": pod["metadata"]["labels"]},
        "spec": {**pod["spec"], "restartPolicy": "Never"},
    }
    spec = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template}
    return {**pod, "apiVersion": "batch/v1", "kind": "Job", "spec": spec}


def a_job_set(pod: Json) -> Json:
    """A JobSet of two Jobs of such pods that differ in their image."""
    jobs = []
    for image in ("first", "second"):
        (container,) = pod["spec"]["containers"]
        job = a_job({**pod, "spec": {**pod["spec"], "containers": [{**container, "image": image}]}})
        jobs.append({"name": image, "replicas": 1, "template": {"spec": job["spec"]}})
    return {
        **pod,
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "spec": {"replicatedJobs": jobs},
    }


def of_indexed_job(pod: Json) -> Json:
    """The pod as the Job controller creates it, with `NUMBER` where its number will be."""
    index = {"batch.kubernetes.io/job-completion-index": "NUMBER"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "train-NUMBER", "uid": "NUMBER"}
    metadata = {
        "labels": {**pod["metadata"].get("labels", {}), **index, "job-name": "train-NUMBER"},
        "annotations": {**pod["metadata"].get("annotations", {}), **index},
        "ownerReferences": [{**job, "controller": True}],
    }
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "hostname": "train-NUMBER"}}


def with_name(obj: Json, number: int) -> Json:
    """The object with a name and with what the API server writes, such as the volume of a pod's token."""
    whole = {**obj, "metadata": {**WRITTEN, **obj["metadata"]}}
    if obj["kind"] == "Pod":
        whole["spec"] = with_token(obj["spec"])
    if obj["kind"] == "Job":
        template = obj["spec"]["template"]
        labels = {**template["metadata"]["labels"], **OF_JOB}
        whole["spec"] = {
            **obj["spec"],
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-NUMBER"}},
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        }
    numbered: Json = json.loads(json.dumps(whole).replace("NUMBER", str(number)))
    return numbered


WRITTEN = {"name": "pNUMBER", "uid": "uid-NUMBER", "creationTimestamp": "2026-11-28T00:00:NUMBERZ"}
OF_JOB = {"batch.kubernetes.io/controller-uid": "uid-NUMBER", "job-name": "pNUMBER"}


def with_token(spec: Json) -> Json:
    """The spec with the volume of the ServiceAccount's token."""
    volume = {"name": "kube-api-access-NUMBER", "projected": {"sources": [{"downwardAPI": {"items": []}}]}}
    mount = {"name": "kube-api-access-NUMBER", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    containers = [{**container, "volumeMounts": [mount]} for container in spec["containers"]]
    return {**spec, "containers": containers, "volumes": [volume]}


def cluster(reservations: list[Reservation]) -> Snapshot:
    """Two racks of two nodes with these reservations, of which no policy has seen anything."""
    snapshot = racks(2, 2)
    for reservation in reservations:
        snapshot = snapshot.with_reservation(reservation)
    return snapshot


def outcome(decision: Decision) -> tuple[object, ...]:
    """What a decision does and says, without the cost of its policies, which sharing may change."""
    mutated, findings, plan = decision.mutated, decision.findings, decision.plan
    return (
        decision.response,
        decision.object,
        decision.effects,
        decision.steps,
        decision.notes,
        mutated and replace(mutated, cost=0),
        findings and replace(findings, cost=0),
        plan and (plan.decision, plan.reservations, plan.message()),
    )


@given(st.lists(st.tuples(objects(), st.sampled_from(({}, {"team": "a"}))), min_size=2, max_size=8))
def test_a_decision_does_not_depend_on_earlier_objects(asked: list[tuple[Json, Mapping[str, str]]]) -> None:
    """Each is decided in both calls, beside a cluster on which nothing was decided before."""
    shared, reservations = cluster([]), []
    for number, (unnamed, labels) in enumerate(asked):
        space = namespace_named("research", labels)

        def decided(obj: Json, snapshot: Snapshot, phase: Phase, space: Json = space) -> Decision:
            request = from_object(obj, namespace="research", namespace_object=space)
            return decide(request, POLICIES, snapshot, phase, ENVIRONMENT)

        obj = with_name(unnamed, number)
        decision = decided(obj, shared, "mutate")
        assert outcome(decision) == outcome(decided(obj, cluster(reservations), "mutate"))
        if not decision.response.allowed:
            continue
        for reservation in decision.plan.reservations if decision.plan is not None else ():
            reservations.append(reservation)
            shared = shared.with_reservation(reservation)
        stored = dict(decision.object or {})
        alone = decided(stored, cluster(reservations), "validate")
        assert outcome(decided(stored, shared, "validate")) == outcome(alone)


@pytest.mark.parametrize(("make", "times"), [(dict, 4), (of_indexed_job, 4), (a_job, 2)])
def test_policies_on_an_equal_object_are_hardly_evaluated(
    make: Callable[[Json], Json], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shipped policies read neither what names it nor what the plan writes; the rest reads the plan."""
    evaluated = evaluations(monkeypatch)
    snapshot, counts = cluster([]), []
    for number in range(2):
        evaluated.clear()
        obj = of_one_gpu(number, make)
        decision = decide(from_object(obj), POLICIES, snapshot, "mutate", ENVIRONMENT)
        for reservation in decision.plan.reservations if decision.plan is not None else ():
            snapshot = snapshot.with_reservation(reservation)
        counts.append(len(evaluated))
    assert counts[1] < counts[0] / times, counts


def of_one_gpu(number: int, make: Callable[[Json], Json] = dict) -> Json:
    """A pod of one GPU, or what `make` makes of it."""
    container = {"name": "main", "image": "trainer", "resources": RESOURCES[0]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {}}, "spec": {"containers": [container]}}
    return with_name(make(pod), number)


def hostname_of_free_gpus() -> PolicySet:
    """A policy that writes the number of free GPUs of the best rack, which changes with each reservation."""
    free = "string(cluster.largestFree.topo.rack.gpus)"
    return loaded(
        mutating(patch(f'[JSONPatch{{op: "add", path: "/spec/hostname", value: {free}}}]'), api=OURS)
    )


def test_what_changes_with_reservations_is_read_for_each_pod() -> None:
    """`cluster` is the same for all pods, except for the keys that depend on pods and reservations."""
    policies, snapshot = hostname_of_free_gpus(), racks(1, 2)
    hostnames = []
    for number in range(3):
        request = from_object(of_one_gpu(number))
        decision = decide(request, policies, snapshot, "mutate", Environment())
        hostnames.append((decision.object or {})["spec"]["hostname"])
        assert decision.plan is not None
        for reservation in decision.plan.reservations:
            snapshot = snapshot.with_reservation(reservation)
    assert hostnames == ["16", "15", "14"]
