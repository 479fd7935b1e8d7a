"""Topology requests in every dialect, where they may stand and what they become."""

from __future__ import annotations

import copy

import pytest

from planner.model.errors import InputError
from planner.model.podgroup import Constraint, FabricWish
from tests.webhook.workloads import objects as o
from webhook.workloads import read

KAI = "kai.scheduler/topology"
REQUIRED, PREFERRED = f"{KAI}-required-placement", f"{KAI}-preferred-placement"
KUEUE = "kueue.x-k8s.io/podset"


def test_kais_keys_on_the_object_are_the_gangs() -> None:
    """Topology, required and preferred level constrain the whole gang, and origins name their fields."""
    gang = read(o.annotated(o.JOB, {KAI: "fabric", REQUIRED: "zone", PREFERRED: "rack"})).gangs[0]
    assert gang.constraint == Constraint("fabric", "zone", "rack")
    assert (f"metadata.annotations[{KAI}]", "topology", "fabric") in gang.origins


def test_kais_keys_on_a_template_are_its_pod_sets() -> None:
    """A group of a RayCluster has a request of its own."""
    template = o.pod_template(8, {KAI: "fabric", REQUIRED: "rack"})
    obj = o.changed(o.RAY_CLUSTER, ("spec", "workerGroupSpecs", 1, "template"), template)
    gang = read(obj).gangs[0]
    assert gang.constraint == Constraint()
    assert {pod_set.name: pod_set.constraint.required for pod_set in gang.pod_sets} == {
        "head": "",
        "small": "",
        "big": "rack",
    }


def test_a_jobsets_leaf_is_annotated_on_its_job_template() -> None:
    """KAI reads a leaf's keys at replicatedJobs[].template.metadata."""
    place = ("spec", "replicatedJobs", 1, "template", "metadata")
    gang = read(o.changed(o.JOB_SET, place, {"annotations": {REQUIRED: "rack"}})).gangs[0]
    assert [pod_set.constraint.required for pod_set in gang.pod_sets] == ["", "rack"]
    assert gang.origins[0][0] == f"spec.replicatedJobs[1].template.metadata.annotations[{REQUIRED}]"


def test_kueues_keys_are_read_on_templates() -> None:
    """Required level and slices belong to the PodSet."""
    keys = {
        f"{KUEUE}-required-topology": "block",
        f"{KUEUE}-slice-required-topology": "rack",
        f"{KUEUE}-slice-size": "2",
    }
    gang = read(o.changed(o.JOB, ("spec", "template"), o.pod_template(8, keys))).gangs[0]
    assert gang.pod_sets[0].constraint == Constraint("", "block", "", "rack", 2)


def test_kueues_keys_on_the_object_have_no_effect() -> None:
    """Kueue would not read them there, and a warning says where they belong."""
    gang = read(o.annotated(o.JOB, {f"{KUEUE}-required-topology": "rack"})).gangs[0]
    assert gang.constraint == Constraint()
    assert "belongs on pod templates" in gang.warnings[0]


def test_a_pod_is_object_and_template_at_once() -> None:
    """Both KAI's and Kueue's keys are read on a Pod."""
    kai, kueue = (read(o.annotated(o.POD, {key: "rack"})) for key in (REQUIRED, f"{KUEUE}-required-topology"))
    assert kai.gangs[0].constraint == kueue.gangs[0].constraint == Constraint(required="rack")


def test_one_pod_set_group_over_all_pod_sets_is_the_gangs() -> None:
    """Kueue places PodSets of one group in one domain, so their level is the gang's."""
    template = o.pod_template(8, {f"{KUEUE}-required-topology": "rack", f"{KUEUE}-group-name": "ranks"})
    obj = o.PYTORCH_JOB
    for name in ("Master", "Worker"):
        obj = o.changed(obj, ("spec", "pytorchReplicaSpecs", name, "template"), template)
    gang = read(obj).gangs[0]
    assert gang.constraint.required == "rack"
    assert {pod_set.constraint for pod_set in gang.pod_sets} == {Constraint()}


def test_two_systems_that_name_two_topologies_are_both_kept() -> None:
    """The planner sees every topology that was named, and where."""
    template = o.pod_template(8, {KAI: "west"})
    gang = read(o.annotated(o.changed(o.JOB, ("spec", "template"), template), {KAI: "east"})).gangs[0]
    assert [(kind, value) for _, kind, value in gang.origins] == [("topology", "east"), ("topology", "west")]


def test_a_launcher_without_a_gpu_may_stay_outside() -> None:
    """An MPIJob's required level is its workers'."""
    gang = read(o.annotated(o.MPI_JOB, {KAI: "fabric", REQUIRED: "rack"})).gangs[0]
    assert gang.constraint == Constraint(topology="fabric")
    assert {pod_set.name: pod_set.constraint.required for pod_set in gang.pod_sets} == {
        "launcher": "",
        "worker": "rack",
    }


def test_segments_are_the_workers() -> None:
    """KAI's segment keys on a PyTorchJob divide its workers, not the master."""
    keys = {"kai.scheduler/segment-size": "3", "kai.scheduler/segment-topology-required-placement": "rack"}
    gang = read(o.annotated(o.PYTORCH_JOB, keys)).gangs[0]
    assert {pod_set.name: pod_set.constraint.slice_size for pod_set in gang.pod_sets} == {
        "master": 0,
        "worker": 3,
    }


def test_a_slice_level_needs_a_size() -> None:
    """A level for slices alone says nothing, and the error names the field."""
    template = o.pod_template(8, {f"{KUEUE}-slice-required-topology": "rack"})
    with pytest.raises(
        InputError, match=r"spec\.template\.metadata.*slice-required-topology\]: names a level"
    ):
        read(o.changed(o.JOB, ("spec", "template"), template))


def test_a_gpu_count_that_differs_is_told() -> None:
    """nod-ai's gpu-count is checked against the pods' sum; both numbers are named."""
    right, wrong = (
        read(o.annotated(o.JOB, {"topology.scheduler/gpu-count": count})).gangs[0].warnings
        for count in ("8", "16")
    )
    assert right == ()
    assert "16" in wrong[0]
    assert "8" in wrong[0]


@pytest.mark.parametrize(
    ("stated", "gbps"),
    [("200Gb", 200.0), ("200Gbps", 200.0), ("0.4Tb/s", 400.0), ("25000Mb", 25.0), ("50", 50.0)],
)
def test_a_bandwidth_is_read_in_every_spelling(stated: str, gbps: float) -> None:
    """In gigabits per second, whatever the unit."""
    gang = read(o.annotated(o.JOB, {"topology.scheduler/network-bandwidth": stated})).gangs[0]
    assert gang.fabric.gbps == pytest.approx(gbps)


def test_the_leaf_spine_wishes_are_carried() -> None:
    """Domain, strategy and latency; any of the interface's keys makes its rules hold."""
    spine = "topology.scheduler"
    keys = {
        f"{spine}/preferred-domain": "leaf-1",
        f"{spine}/placement-strategy": "distributed",
        f"{spine}/latency-sensitive": "true",
    }
    gang = read(o.annotated(o.JOB, keys)).gangs[0]
    assert gang.fabric == FabricWish("leaf-1", 0.0, "distributed", True, True)
    assert read(o.annotated(o.JOB, {f"{spine}/gpu-count": "8"})).gangs[0].fabric
    assert not read(o.JOB).gangs[0].fabric


def test_a_policy_of_the_config_map_is_carried_by_name() -> None:
    """The older recipe's annotation, where it is no scope."""
    key = "scheduling.run.ai/topology-policy"
    assert read(o.annotated(o.POD, {key: "tight"})).gangs[0].policy == "tight"
    scoped = read(o.annotated(o.POD, {key: "rack"})).gangs[0]
    assert (scoped.policy, scoped.constraint.required) == ("", "rack")


def test_balanced_slices_and_a_least_size_are_read() -> None:
    """Bayplan's annotations for equal parts and for the minimum number of pods."""
    keys = {"bayplan.dev/balanced-slices": "true", "bayplan.dev/gang-min": "2"}
    job = o.changed(o.changed(o.JOB, ("spec", "parallelism"), 6), ("spec", "completions"), 6)
    gang = read(o.annotated(job, keys)).gangs[0]
    assert gang.balanced
    assert [(pod_set.count, pod_set.max_count) for pod_set in gang.pod_sets] == [(2, 6)]


@pytest.mark.parametrize(
    ("key", "value", "valid"),
    [
        ("bayplan.dev/reserve", "rak", "auto, domain, nodes, none"),
        ("bayplan.dev/on-unavailable", "wait", "queue, reject, admit"),
        ("bayplan.dev/skip", "yes", "true, false"),
        ("topology.scheduler/placement-strategy", "spread", "consolidated, distributed, balanced"),
        ("topology.scheduler/gpu-count", "many", "whole number"),
        ("topology.scheduler/network-bandwidth", "fast", "200Gb"),
        ("bayplan.dev/balanced-slices", "yes", "true, false"),
        ("bayplan.dev/gang-size", "0", "1 to"),
    ],
)
def test_a_bad_value_names_the_valid_ones(key: str, value: str, valid: str) -> None:
    """The error names the field."""
    with pytest.raises(InputError) as caught:
        read(o.annotated(o.JOB, {key: value}))
    assert caught.value.where.field == f"metadata.annotations[{key}]"
    assert valid in caught.value.message


def test_choices_on_a_template_hold_too() -> None:
    """bayplan.dev keys are read on the object first, then on its templates."""
    obj = o.changed(o.JOB, ("spec", "template"), o.pod_template(2, {"bayplan.dev/reserve": "nodes"}))
    assert read(obj).gangs[0].reserve == "nodes"
    assert read(o.annotated(obj, {"bayplan.dev/reserve": "none"})).gangs[0].reserve == "none"


@pytest.mark.parametrize(
    ("labels", "scheduler", "source"),
    [
        ({}, "", ""),
        ({}, "kai-scheduler", "kai.scheduler"),
        ({}, "runai-scheduler", "kai.scheduler"),
        ({"kai.scheduler/queue": "team"}, "gpu-scheduler", "kai.scheduler"),
        ({"kueue.x-k8s.io/queue-name": "team"}, "", "kueue.x-k8s.io"),
    ],
)
def test_a_gang_follows_the_topologies_that_its_scheduler_reads(
    labels: dict[str, str], scheduler: str, source: str
) -> None:
    """By its queue, or by the scheduler that its pods name; else nothing says whose Topologies count."""
    job = copy.deepcopy(o.JOB)
    job["metadata"]["labels"] = labels
    job["spec"]["template"]["spec"]["schedulerName"] = scheduler
    assert {group.follows for group in read(job).gangs} == {source}
