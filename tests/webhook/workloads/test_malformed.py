"""Malformed objects of known kinds: an error that names the field, and never anything else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.errors import InputError, Where
from tests.webhook.workloads import objects as o
from webhook.workloads import pod_of, read, wants_plan, write_pod

TEMPLATE = ("spec", "template")


@pytest.mark.parametrize(
    ("obj", "path", "value", "message"),
    [
        (o.JOB, TEMPLATE, None, "spec.template: is missing"),
        (o.JOB, ("spec",), [], "spec: expected a mapping, found a list"),
        (
            o.JOB,
            ("spec", "parallelism"),
            "4",
            "spec.parallelism: expected a whole number, found the string '4'",
        ),
        (o.JOB, ("spec", "parallelism"), -1, "spec.parallelism: "),
        (o.JOB, ("spec", "parallelism"), 10**12, "spec.parallelism: "),
        (o.JOB, ("spec", "parallelism"), True, "spec.parallelism: "),
        (o.JOB, ("spec", "parallelism"), 2.5, "spec.parallelism: "),
        (o.JOB, (*TEMPLATE, "spec"), "x", "spec.template.spec: expected a mapping, found the string 'x'"),
        (o.JOB, (*TEMPLATE, "metadata"), [1], "spec.template.metadata: "),
        (
            o.JOB,
            ("metadata", "annotations"),
            {"bayplan.dev/reserve": 4},
            "annotations[bayplan.dev/reserve]: ",
        ),
        (o.JOB, ("metadata", "name"), None, "metadata.name: is missing"),
        (o.JOB, ("metadata", "ownerReferences"), {"kind": "JobSet"}, "metadata.ownerReferences: "),
        (o.JOB_SET, ("spec", "replicatedJobs"), {}, "spec.replicatedJobs: expected a list"),
        (o.JOB_SET, ("spec", "replicatedJobs", 1, "name"), "driver", "spec.replicatedJobs[1].template"),
        (o.JOB_SET, ("spec", "replicatedJobs", 0), None, "spec.replicatedJobs[0]: is missing"),
        (o.PYTORCH_JOB, ("spec", "pytorchReplicaSpecs"), None, "spec.pytorchReplicaSpecs: is missing"),
        (o.LWS, ("spec", "replicas"), 10**6, "spec.replicas: 1000000 replicas, each a gang"),
        (o.LWS, ("spec", "leaderWorkerTemplate", "size"), 0, "spec.leaderWorkerTemplate.size: "),
        (o.RAY_CLUSTER, ("spec", "workerGroupSpecs", 0, "suspend"), "yes", "workerGroupSpecs[0].suspend: "),
    ],
)
def test_the_error_names_the_field(obj: Any, path: Any, value: Any, message: str) -> None:
    """One wrong value, one line that says where it stands and what was expected."""
    with pytest.raises(InputError) as caught:
        read(o.changed(obj, path, value), where=Where("job.yaml"))
    assert message in str(caught.value)
    assert str(caught.value).startswith("job.yaml: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "obj",
    [
        o.changed(o.JOB, ("metadata", "name"), "other/0"),
        o.changed(o.JOB, ("metadata",), {"generateName": "a/b-"}),
        o.changed(o.JOB, ("metadata", "namespace"), "other/Job"),
        o.annotated(o.POD, {"bayplan.dev/gang": "x/y", "bayplan.dev/gang-size": "2"}),
        o.annotated(o.POD, {"pod-group-name": "../x"}),
    ],
)
def test_no_name_passes_for_another_gangs(obj: Any) -> None:
    """A name with a slash is refused, because gangs are named NAMESPACE/KIND/NAME."""
    with pytest.raises(InputError, match="is no name"):
        read(obj)


def test_values_stay_out_of_messages() -> None:
    """A long value is shortened, so that a message is one line."""
    with pytest.raises(InputError) as caught:
        read(o.annotated(o.JOB, {"bayplan.dev/reserve": "x" * 5000}))
    assert len(str(caught.value)) < 300


def test_all_wrong_annotations_are_told_at_once() -> None:
    """Told one by one, the author would need a call of kubectl for each."""
    wrong = {
        "bayplan.dev/reserve": "all",
        "bayplan.dev/gang-size": "eight",
        "topology.scheduler/latency-sensitive": "maybe",
        "topology.scheduler/gpu-count": "many",
    }
    with pytest.raises(InputError) as caught:
        read(o.annotated(o.JOB, wrong))
    (times,) = {str(caught.value).count(f"metadata.annotations[{key}]: ") for key in wrong}
    assert times == 1
    assert caught.value.where.field == "metadata.annotations[bayplan.dev/gang-size]"
    assert str(caught.value).startswith(
        "team/Job/demo: metadata.annotations[bayplan.dev/gang-size]: expected"
    )


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**13), 10**13), st.floats(), st.text(max_size=8),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=2),
    st.dictionaries(st.text(max_size=4) | st.integers(), st.none() | st.integers(), max_size=2),
)  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inside for place in _places(part, (*path, key)))]


@settings(max_examples=400)
@given(st.data())
def test_nothing_but_an_input_error_ever_comes_out(data: st.DataObject) -> None:
    """Any value replaced by any other gives a workload or an InputError, and what is read can be walked."""
    obj = copy.deepcopy(data.draw(st.sampled_from(o.EVERY)))
    for _ in range(data.draw(st.integers(1, 3))):
        places = [place for place in _places(obj) if place and place[0] not in ("apiVersion", "kind")]
        obj = o.changed(obj, data.draw(st.sampled_from(places)), data.draw(JUNK))
    try:
        workload = read(obj, request_uid="uid")
    except InputError:
        return
    wants_plan(workload)
    for template in (*workload.templates, *workload.inlined):
        assert write_pod(obj, template, pod_of(template, obj)) == obj


POD_GROUP = {
    "minMember": 2,
    "topologyConstraint": {"topology": "fabric", "requiredTopologyLevel": "rack"},
    "schedulingConstraints": {"topology": [{"key": "rack"}]},
    "topologyPolicy": {
        "scope": "rack",
        "affinity": {"required": [{"key": "a", "operator": "In", "values": ["b"]}]},
    },
    "podGroups": [{"name": "part", "policy": {"gang": {"minCount": 3}}}],
}


@settings(max_examples=150)
@given(st.data())
def test_a_malformed_pod_group_is_an_input_error_too(data: st.DataObject) -> None:
    """The PodGroup that a pod names is input like the pod, and an error in it names the PodGroup."""
    group: Any = {"metadata": {"annotations": {"kai.scheduler/topology": "fabric"}}, "spec": POD_GROUP}
    place = data.draw(st.sampled_from([place for place in _places(group) if place]))
    groups = {("team", "pg"): o.changed(group, place, data.draw(JUNK))}
    pod = o.annotated(o.POD, {"pod-group-name": "pg"})
    referring = o.changed(o.POD, ("spec", "workloadRef"), {"name": "pg", "podGroup": "part"})
    for member in (pod, referring):
        try:
            read(member, podgroups=groups)
        except InputError as error:
            assert error.where.object == "team/pg"  # noqa: PT017 - most draws are no error
