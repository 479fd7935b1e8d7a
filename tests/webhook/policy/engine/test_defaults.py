"""Policies see defaulted fields, but the result does not contain them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.webhook.policy.helpers import deployment, pod
from webhook.jsontools.diff import equal
from webhook.policy.engine.defaults import defaulted
from webhook.policy.engine.mutation.changes import carry

LIMITS = {"limits": {"cpu": "1"}}


def value_at(obj: Any, path: str) -> Any:
    """What lies under a path of keys and indices."""
    for step in path.split("."):
        obj = obj[int(step)] if isinstance(obj, list) else obj[step]
    return obj


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.restartPolicy", "Always"),
        ("spec.dnsPolicy", "ClusterFirst"),
        ("spec.terminationGracePeriodSeconds", 30),
        ("spec.schedulerName", "default-scheduler"),
        ("spec.containers.0.imagePullPolicy", "IfNotPresent"),
        ("spec.containers.0.terminationMessagePolicy", "File"),
        ("spec.containers.0.resources", {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}),
        ("spec.containers.0.ports.0.protocol", "TCP"),
        ("spec.containers.0.env.0.valueFrom.fieldRef.apiVersion", "v1"),
        ("spec.containers.0.livenessProbe.periodSeconds", 10),
        ("spec.containers.0.livenessProbe.httpGet.scheme", "HTTP"),
        ("spec.volumes.0.configMap.defaultMode", 0o644),
        ("spec.volumes.1.emptyDir", {}),
    ],
)
def test_a_pod_has_the_api_servers_defaults(path: str, value: Any) -> None:
    """A policy need not ask whether a field was written."""
    container = {
        "name": "main",
        "image": "busybox:1.36",
        "ports": [{"containerPort": 80}],
        "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "resources": {"limits": {"cpu": "1"}},
        "livenessProbe": {"httpGet": {"port": 80}},
    }
    obj = pod(containers=[container], volumes=[{"name": "c", "configMap": {"name": "x"}}, {"name": "e"}])
    assert value_at(defaulted(obj), path) == value


def test_a_template_lacks_what_only_pods_get() -> None:
    """Requests of limits, service links and host ports come when the pods are created."""
    container = {"name": "main", "image": "a", "ports": [{"containerPort": 80}], "resources": LIMITS}
    spec = {"containers": [container], "hostNetwork": True}
    seen = (defaulted(pod(**spec)), defaulted(pod(**spec), template=True))
    services, ports = (
        [each["spec"].get("enableServiceLinks") for each in seen],
        [value_at(each, "spec.containers.0.ports.0").get("hostPort") for each in seen],
    )
    assert (services, ports) == ([True, None], [80, None])
    assert [value_at(each, "spec.containers.0.resources").get("requests") for each in seen] == [
        LIMITS["limits"],
        None,
    ]


@pytest.mark.parametrize(
    ("strategy", "stored"),
    [
        (None, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ({}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ({"type": "RollingUpdate"}, {"type": "RollingUpdate"}),
        ({"type": "OnDelete"}, {"type": "OnDelete"}),
    ],
)
def test_a_stated_strategy_of_a_stateful_set_gets_no_parameters(strategy: Any, stored: Any) -> None:
    """Unlike a Deployment's."""
    spec = {"template": {"spec": {"containers": []}}, "updateStrategy": strategy}
    sets = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec}
    assert value_at(defaulted(sets), "spec.updateStrategy") == stored


@pytest.mark.parametrize(
    ("amount", "stored"),
    [
        (8, "8"),
        (1.5, "1500m"),
        (2.0, "2"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("8Gi", "8Gi"),
        ("9331843800Gi", "9223372036854775807"),
        ("1000m", "1"),
        ("0.1m", "1m"),
        ("0.736G", "736M"),
        ("5.125", "5.125"),
        ("1.500", "1.500"),
        ("100000", "100k"),
        ("12e3", "12e3"),
        ("1e4", "10e3"),
        ("0", "0"),
        ("no amount", "no amount"),
        (True, True),
    ],
)
def test_amounts_are_seen_as_the_api_server_writes_them(amount: object, stored: object) -> None:
    """The texts are those of Go's apimachinery 0.37.2 after `RoundUp(-3)`, as the API server calls it."""
    container = {"name": "main", "image": "busybox:1.36", "resources": {"limits": {"example.com/a": amount}}}
    limits = value_at(defaulted(pod(containers=[container])), "spec.containers.0.resources.limits")
    assert limits == {"example.com/a": stored}


def test_an_amount_that_no_policy_changes_stays_as_it_was_written() -> None:
    """The file says 8, and after a policy that sets something else it still does."""
    container = {"name": "main", "image": "busybox:1.36", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    obj = pod(containers=[container])
    shown = defaulted(obj)
    changed = copy.deepcopy(shown)
    changed["spec"]["schedulerName"] = "kai-scheduler"
    result = carry(obj, shown, changed)
    assert value_at(result, "spec.containers.0.resources.limits") == {"nvidia.com/gpu": 8}


def test_a_template_keeps_limits_without_requests() -> None:
    """Only a Pod's requests are taken from its limits."""
    obj = deployment()
    obj["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    container = defaulted(obj)["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"cpu": "1"}}
    assert container["terminationMessagePolicy"] == "File"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("registry:5000/busybox", "Always"),
        ("registry:5000/busybox:1", "IfNotPresent"),
        ("busybox@sha256:00", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    """A port in the registry's name is no tag."""
    obj = pod(containers=[{"name": "main", "image": image}])
    assert defaulted(obj)["spec"]["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("kind", "spec", "path", "value"),
    [
        ("batch/v1 Job", {}, "spec.parallelism", 1),
        ("batch/v1 Job", {}, "spec.completions", 1),
        ("batch/v1 Job", {}, "spec.backoffLimit", 6),
        ("batch/v1 Job", {"parallelism": 4}, "spec.completionMode", "NonIndexed"),
        ("batch/v1 CronJob", {}, "spec.concurrencyPolicy", "Allow"),
        ("apps/v1 Deployment", {}, "spec.replicas", 1),
        ("apps/v1 Deployment", {}, "spec.strategy.rollingUpdate.maxSurge", "25%"),
        ("apps/v1 StatefulSet", {}, "spec.podManagementPolicy", "OrderedReady"),
        ("apps/v1 DaemonSet", {}, "spec.updateStrategy.rollingUpdate.maxUnavailable", 1),
        ("apps/v1 ReplicaSet", {}, "spec.replicas", 1),
    ],
)
def test_a_workload_has_the_api_servers_defaults(
    kind: str, spec: dict[str, Any], path: str, value: Any
) -> None:
    """Of its own kind."""
    api_version, _, name = kind.partition(" ")
    obj = {"apiVersion": api_version, "kind": name, "metadata": {"name": "w"}, "spec": spec}
    assert value_at(defaulted(obj), path) == value


def test_a_job_with_parallelism_alone_has_no_completions() -> None:
    """It is a work queue then."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "spec": {"parallelism": 4}}
    assert "completions" not in defaulted(job)["spec"]


def test_a_deployment_that_recreates_has_no_rolling_update() -> None:
    """Defaults follow what is written."""
    strategy = defaulted(deployment(strategy={"type": "Recreate"}))["spec"]["strategy"]
    assert strategy == {"type": "Recreate"}


def test_a_change_in_the_middle_of_a_list_leaves_its_neighbours_as_they_were() -> None:
    """An element put first moves the others, and none of them grows defaults."""
    raw = pod(containers=[{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}])
    before = defaulted(raw)
    after = copy.deepcopy(before)
    after["spec"]["containers"].insert(0, {"name": "first", "image": "z:1"})
    after["spec"]["containers"][2]["image"] = "y:2"
    assert carry(raw, before, after)["spec"]["containers"] == [
        {"name": "first", "image": "z:1"},
        {"name": "a", "image": "x:1"},
        {"name": "b", "image": "y:2"},
    ]


def test_a_default_that_a_policy_removes_stays_away() -> None:
    """And one that it changes is written."""
    raw = pod()
    before = defaulted(raw)
    after = copy.deepcopy(before)
    del after["spec"]["securityContext"]
    after["spec"]["restartPolicy"] = "Never"
    assert carry(raw, before, after) == pod(restartPolicy="Never")


def test_empty_metadata_of_a_kind_without_defaults_is_missing() -> None:
    """`annotations:` in a manifest is null; the API server drops it before admission. Other fields stay."""
    raw = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": {"suspend": None}}
    raw["metadata"] = {"name": "ray", "annotations": None, "labels": None}
    before = defaulted(raw)
    assert before == {**raw, "metadata": {"name": "ray"}}
    after = copy.deepcopy(before)
    after["metadata"]["labels"] = {"queue": "a"}
    assert carry(raw, before, after)["metadata"]["labels"] == {"queue": "a"}
    assert carry(raw, before, before) == raw


def test_true_is_not_one() -> None:
    """JSON tells them apart, Python does not."""
    assert carry({"a": True}, {"a": True}, {"a": 1}) == {"a": 1}
    assert carry({"a": True}, {"a": True}, {"a": 1})["a"] is not True


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["a", "b"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(["name", "x", "y"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=200)
@given(JSON, JSON)
def test_without_defaults_carrying_gives_what_the_policy_made(before: Any, after: Any) -> None:
    """Where nothing was added for evaluation, the result is exactly the mutated object."""
    assert equal(carry(before, before, after), after)


@settings(max_examples=100)
@given(
    JSON,
    st.sampled_from(["spec", "metadata", "template"]),
    st.sampled_from(["v1 Pod", "batch/v1 Job", "apps/v1 Deployment"]),
)
def test_a_malformed_object_gets_defaults_without_a_fall(value: Any, field: str, kind: str) -> None:
    """What is of the wrong type is left for others to tell of, and defaulting twice changes nothing."""
    api_version, _, name = kind.partition(" ")
    obj: dict[str, Any] = {"apiVersion": api_version, "kind": name, "spec": {"containers": value}}
    if field == "template":
        obj["spec"] = {"template": {"spec": value}}
    else:
        obj[field] = value
    once = defaulted(obj)
    assert defaulted(once) == once
