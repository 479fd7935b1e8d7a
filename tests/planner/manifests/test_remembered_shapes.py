"""Pods with equal specs share one shape, which is read once."""

import copy
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.manifests.pods import pod
from planner.manifests.pods.pod import LONGEST_KEPT, UNREAD, shape_of
from planner.model.errors import InputError, Where
from planner.model.pod import PodShape
from tests.planner.manifests.pods.test_pod import FULL, places

WHERE = Where("m.yaml", "Job default/a", "spec.template.spec")
TERM = {"topologyKey": "k", "labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": ["app"]}
SPREAD = {
    "topologyKey": "k",
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "a"}},
}


@pytest.fixture
def readings(monkeypatch):
    """The specs that were read, beginning with an empty cache."""
    read, seen = pod._containers, []
    pod._of_content.cache_clear()
    pod._labelled.cache_clear()
    monkeypatch.setattr(pod, "_containers", lambda spec, where: seen.append(spec) or read(spec, where))
    return seen


def spec_of(**container):
    return {"containers": [{"name": "main", "resources": {"limits": {"cpu": "7"}}, **container}]}


def everything(shape):
    """All fields, including those that do not affect the shape."""
    return [getattr(shape, row.name) for row in fields(PodShape)]


def test_the_pods_of_a_controller_are_read_once(readings):
    """Equal, but never the same objects."""
    shapes = [shape_of(copy.deepcopy(FULL), WHERE) for _ in range(5)]
    assert len(readings) == 1
    assert all(everything(shape) == everything(shapes[0]) for shape in shapes)


@pytest.mark.parametrize("field", sorted(UNREAD))
def test_what_a_container_runs_says_nothing_of_its_shape(readings, field):
    shape_of(spec_of(), WHERE)
    shape_of(spec_of(**{field: "trainer:1"}), WHERE)
    shape_of(spec_of(**{field: [{"name": "A", "value": "1"}]}), WHERE)
    assert len(readings) == 1


def test_the_pods_of_an_indexed_job_are_read_once(readings):
    """They differ in hostnames, and in the volume that the API server adds for the token."""
    for number in range(3):
        volume = {"name": f"kube-api-access-{number}", "projected": {"sources": []}}
        shape_of({**spec_of(), "hostname": f"a-{number}", "volumes": [volume]}, WHERE)
    assert len(readings) == 1


@pytest.mark.parametrize(
    "other",
    [
        {**spec_of(), "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
        {**spec_of(), "volumes": [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
        spec_of(resources={"limits": {"cpu": "8"}}),
        spec_of(ports=[{"containerPort": 80, "hostPort": 80}]),
        spec_of(name="other"),
        {"initContainers": spec_of()["containers"]},
        {**spec_of(), "nodeSelector": {"a": "b"}},
        {**spec_of(), "schedulingGates": [{"name": "wait"}]},
        {**spec_of(), "priority": 1},
    ],
)
def test_anything_else_is_read_for_itself(readings, other):
    shape_of(spec_of(), WHERE)
    shape_of(other, WHERE)
    assert len(readings) == 2


def test_labels_are_each_pods_own(readings):
    """One shape serves both, and neither has the other's labels."""
    first, second = (shape_of(spec_of(), WHERE, labels={"index": index}) for index in "01")
    assert (first.labels, second.labels) == ({"index": "0"}, {"index": "1"})
    assert len(readings) == 1


@pytest.mark.parametrize(
    "rules",
    [
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}},
        {"topologySpreadConstraints": [{**SPREAD, "matchLabelKeys": ["app"]}]},
    ],
)
def test_what_selects_by_the_pods_own_labels_is_read_with_them(rules):
    first, second = (shape_of({**spec_of(), **rules}, WHERE, labels={"app": app}) for app in "ab")
    assert (first.terms, first.spread) != (second.terms, second.spread)


def test_a_share_of_a_gpu_is_read_from_the_annotations():
    """The spec is the same with it and without."""
    half, none = (shape_of(spec_of(), WHERE, annotations=notes) for notes in ({"gpu-fraction": "0.5"}, {}))
    assert half.requests != none.requests


@pytest.mark.parametrize("volumes", [{}, "", 0, False, "data"])
def test_volumes_that_are_no_list_are_an_error(volumes):
    with pytest.raises(InputError, match=r"spec\.volumes"):
        shape_of({**spec_of(), "volumes": volumes}, Where("m.yaml", "Job default/a", "spec"))


def test_an_error_names_its_own_place_each_time():
    """Nothing of an error is remembered."""
    wrong = spec_of(resources={"limits": {"cpu": "x"}})
    for name in ("a", "b"):
        with pytest.raises(InputError, match=f"Job default/{name}: spec.containers"):
            shape_of(wrong, Where("m.yaml", f"Job default/{name}", "spec"))


@settings(max_examples=200)
@given(
    st.sampled_from([place for place in places(FULL) if place]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
        max_leaves=4,
    ),
)
def test_what_is_remembered_is_what_would_be_read(place, value):
    """Whatever stands anywhere: a spec that is too long to be kept is read anew, and comes to the same."""
    spec = copy.deepcopy(FULL)
    holder = spec
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value

    def outcome(read_spec):
        try:
            return everything(
                shape_of(read_spec, WHERE, labels={"a": "b"}, annotations={"gpu-memory": "2000"})
            )
        except InputError as error:
            return str(error)

    fresh = outcome({**spec, "schedulerName": "x" * LONGEST_KEPT})
    assert outcome(spec) == fresh
    assert outcome(spec) == fresh
