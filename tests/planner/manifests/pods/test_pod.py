"""Tests the resources of one pod, by the rules of the kubelet."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.manifests.pods.pod import shape_of
from planner.model.errors import InputError, Where
from planner.model.labels import Requirement, Toleration
from planner.model.pod import PodTerm

WHERE = Where("m.yaml", "Job default/a", "spec.template.spec")


def container(**resources):
    return {"name": "c", "image": "i", "resources": {"requests": resources}}


def requests(**spec):
    return shape_of(spec, WHERE).requests


def test_the_containers_are_summed():
    """CPU in millicores; the pod counts as one of the node's pods."""
    total = requests(containers=[container(cpu="500m"), container(cpu=1, memory="1Gi")])
    assert total == {"cpu": 1500, "memory": 2**30, "pods": 1}


def test_a_limit_without_a_request_is_the_request():
    """As the API server defaults it."""
    limited = {"resources": {"limits": {"nvidia.com/gpu": 8, "cpu": 4}, "requests": {"cpu": 2}}}
    assert requests(containers=[limited]) == {"nvidia.com/gpu": 8, "cpu": 2000, "pods": 1}


def test_a_large_init_container_raises_the_request():
    """The larger of the containers' sum and the largest init container, by resource."""
    spec = {
        "containers": [container(cpu=1, memory="4Gi")],
        "initContainers": [container(cpu=3, memory="1Gi")],
    }
    assert requests(**spec) == {"cpu": 3000, "memory": 4 * 2**30, "pods": 1}


def test_a_sidecar_counts_with_the_containers_and_with_later_init_containers():
    """max(app + sidecars, sidecars started before + init)."""
    sidecar = {**container(cpu=1), "restartPolicy": "Always"}
    assert requests(containers=[container(cpu=2)], initContainers=[sidecar])["cpu"] == 3000
    later = {"containers": [container(cpu=2)], "initContainers": [sidecar, container(cpu=4)]}
    assert requests(**later)["cpu"] == 5000
    earlier = {"containers": [container(cpu=2)], "initContainers": [container(cpu=4), sidecar]}
    assert requests(**earlier)["cpu"] == 4000


def test_overhead_is_added_and_pod_level_resources_replace():
    """The runtime class's overhead on top; `spec.resources` for what it names."""
    spec = {
        "containers": [container(cpu=1, memory="1Gi")],
        "resources": {"requests": {"cpu": 6}},
        "overhead": {"cpu": "250m"},
    }
    assert requests(**spec) == {"cpu": 6250, "memory": 2**30, "pods": 1}


def test_a_limit_of_the_pod_is_its_request_where_no_container_requests_the_resource():
    """As the API server defaults pod-level requests (KEP-2837)."""
    limited = {"resources": {"limits": {"cpu": 6, "memory": "8Gi"}}}
    assert requests(containers=[container(cpu=1)], **limited) == {"cpu": 1000, "memory": 8 * 2**30, "pods": 1}


def test_a_limit_of_the_pod_on_huge_pages_is_its_request():
    """Huge pages cannot be overcommitted, whatever the containers request."""
    limited = {"resources": {"limits": {"hugepages-2Mi": "8Mi"}}}
    pages = container(**{"hugepages-2Mi": "4Mi"})
    assert requests(containers=[pages], **limited) == {"hugepages-2Mi": 8 * 2**20, "pods": 1}


def test_devices_are_requested_by_containers_alone():
    """Kubernetes counts cpu, memory and huge pages at the level of the pod, nothing else."""
    stated = {"resources": {"requests": {"nvidia.com/gpu": 4, "hugepages-2Mi": "4Mi"}}}
    asked = requests(containers=[container(**{"nvidia.com/gpu": 2})], **stated)
    assert asked == {"nvidia.com/gpu": 2, "hugepages-2Mi": 4 * 2**20, "pods": 1}


def test_nothing_asked_for_is_left_out():
    """Zero of a resource fits on a node without it."""
    assert requests(containers=[container(**{"nvidia.com/gpu": 0})]) == {"pods": 1}


def test_selectors_affinity_and_tolerations_are_read():
    """Terms as they stand; matchFields knows the node's name."""
    node_affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1", "r2"]}],
                    "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}],
                }
            ]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
        ],
    }
    shape = shape_of(
        {
            "nodeSelector": {"pool": "a"},
            "affinity": {"nodeAffinity": node_affinity},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        },
        WHERE,
    )
    assert shape.node_selector == {"pool": "a"}
    assert shape.affinity == (
        (Requirement("rack", "In", ("r1", "r2")), Requirement("metadata.name", "NotIn", ("n1",))),
    )
    assert shape.preferences == ((5, (Requirement("disk", "Exists"),)),)
    assert shape.tolerations == (Toleration("nvidia.com/gpu", "Exists"),)


def test_anti_affinity_is_read_as_a_term_over_the_pods_that_it_selects():
    """Labels come along, so that it can be told whether it selects the pod itself."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spec = {"affinity": {"podAntiAffinity": rule}}
    shape = shape_of(spec, WHERE, labels={"app": "b"})
    assert shape.terms == (PodTerm("kubernetes.io/hostname", (Requirement("app", "In", ("a",)),)),)
    assert shape.labels == {"app": "b"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": {"a": 1}}, "containers"),
        ({"containers": ["x"]}, "containers[0]"),
        ({"containers": [{"resources": []}]}, "containers[0].resources"),
        ({"containers": [container(cpu="x")]}, "containers[0].resources.requests.cpu"),
        ({"containers": [container(cpu=-1)]}, "containers[0].resources.requests.cpu"),
        ({"initContainers": [None]}, "initContainers[0]"),
        ({"nodeSelector": ["a"]}, "nodeSelector"),
        ({"nodeSelector": {"a": 1}}, "nodeSelector.a"),
        ({"affinity": "x"}, "affinity"),
        ({"tolerations": {"key": "a"}}, "tolerations"),
        ({"priority": "high"}, "priority"),
    ],
)
def test_a_malformed_field_is_named(spec, field):
    """File, object and the whole path from the object's root."""
    with pytest.raises(InputError) as refused:
        shape_of(spec, WHERE)
    assert str(refused.value).startswith(f"m.yaml: Job default/a: spec.template.spec.{field}: ")


FULL = {
    "containers": [container(cpu=1)],
    "initContainers": [{**container(cpu=1), "restartPolicy": "Always"}],
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "a"}],
    "overhead": {"cpu": 1},
    "resources": {"limits": {"cpu": 2}},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            }
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "k",
                    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                }
            ]
        },
    },
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=6,
)


def places(value, path=()):
    """The path of every value in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@settings(max_examples=200)
@given(st.sampled_from([place for place in places(FULL) if place]), JSON)
def test_any_value_anywhere_is_read_or_refused(place, value):
    """The only exception is `InputError`."""
    spec = copy.deepcopy(FULL)
    parent = spec
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    outcome = None
    try:
        outcome = shape_of(spec, WHERE, labels={"a": "b"})
    except InputError as error:
        outcome = str(error)
    assert outcome
