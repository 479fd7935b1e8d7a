"""A workload that is too large is refused with a message before it is read."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.builders import racks
from tests.effort import calls
from tests.webhook.workloads import objects as o
from webhook.admission import size
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.policy import PolicySet, from_object

SNAPSHOT = racks(2, 4)
Json = dict[str, Any]


def pod(**spec: Any) -> Json:
    """A pod of one GPU; `spec` is added to its own."""
    template = copy.deepcopy(o.pod_template(1)["spec"])
    return o.obj("v1", "Pod", {**template, "restartPolicy": "Never", **spec})


def containers(count: int) -> list[Json]:
    """This many containers without requests."""
    return [{"name": f"c{number}", "image": "i"} for number in range(count)]


def with_resources(count: int) -> Json:
    """A pod whose container requests this many resources."""
    limits = {f"example.com/r{number}": "1" for number in range(count)}
    return pod(containers=[{"name": "main", "image": "i", "resources": {"limits": limits}}])


def in_values(count: int) -> Json:
    """A pod that may use this many nodes by name."""
    values = [f"n{number}" for number in range(count)]
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return pod(affinity={"nodeAffinity": required})


def annotated(count: int) -> Json:
    """A pod with this many annotations."""
    obj = pod()
    obj["metadata"]["annotations"] = {f"a{number}": "" for number in range(count)}
    return obj


def decided(obj: Json, old: Json | None = None) -> Decision:
    """The mutating call without policies."""
    request = from_object(obj, "UPDATE" if old else "CREATE", old_object=old)
    return decide(request, PolicySet(), SNAPSHOT, "mutate")


BOUNDS = [
    (lambda n: pod(initContainers=containers(n)), size.MOST_BY_NAME["initContainers"], "spec.initContainers"),
    (with_resources, size.MOST_BY_NAME["limits"], "spec.containers[0].resources.limits"),
    (in_values, size.MOST_BY_NAME["values"], ".nodeSelectorTerms[0].matchExpressions[0].values"),
    (lambda n: pod(tolerations=[{"key": f"k{k}"} for k in range(n)]), size.MOST_ENTRIES, "spec.tolerations"),
    (annotated, size.MOST_ENTRIES, "metadata.annotations"),
]


@pytest.mark.parametrize(("make", "bound", "field"), BOUNDS, ids=[field for *_, field in BOUNDS])
def test_what_has_more_is_refused_with_field_number_and_bound(make: Any, bound: int, field: str) -> None:
    """An object of exactly the bound is read."""
    response = decided(make(bound + 1)).response
    assert (response.allowed, response.code) == (False, 422)
    assert (
        f"{field} has {bound + 1} entries; at most {bound} are planned. What would work" in response.message
    )
    assert "entries; at most" not in decided(make(bound)).response.message


def with_limit(key: str) -> Json:
    """A pod whose container requests one of a resource."""
    return pod(containers=[{"name": "main", "image": "i", "resources": {"limits": {key: "1"}}}])


def with_annotation(key: str) -> Json:
    """A pod with an annotation of this key, and of a text that is longer."""
    obj = pod()
    obj["metadata"]["annotations"] = {key: "z" * 2_000}
    return obj


def on_host(value: str) -> Json:
    """A pod that may use only nodes with a label of this value."""
    return pod(nodeSelector={"kubernetes.io/hostname": value})


def avoiding_nodes(key: str) -> Json:
    """A pod that stays away from nodes with a label of this key."""
    term = {"matchExpressions": [{"key": key, "operator": "DoesNotExist"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return pod(affinity={"nodeAffinity": required})


WORDS = [
    (avoiding_nodes, ".nodeSelectorTerms[0].matchExpressions[0]"),
    (lambda name: pod(containers=[{"name": name, "image": "i"}]), "spec.containers[0]"),
    (with_limit, "spec.containers[0].resources.limits"),
    (with_annotation, "metadata.annotations"),
    (on_host, "spec.nodeSelector"),
]


@pytest.mark.parametrize(("make", "field"), WORDS, ids=[field for _, field in WORDS])
def test_a_name_that_is_longer_is_refused_with_field_length_and_bound(make: Any, field: str) -> None:
    """Caches kept thousands of names of a megabyte, and comparing one took seconds; digits, which Python does
    not read as a number when there are as many, ended in an internal error.
    """
    response = decided(make("n/mig-" + "1" * 5_000)).response
    assert (response.allowed, response.code) == (False, 422)
    assert f"{field} has a name of 5006 characters; at most 1000 are planned. What would work" in (
        response.message
    )
    assert "at most 1000" not in decided(make("n" * size.LONGEST_WORD)).response.message


def test_the_work_for_what_is_refused_does_not_grow_with_it() -> None:
    """Ten thousand containers cost as much as a thousand."""
    small, large = (pod(containers=containers(count)) for count in (1_000, 10_000))
    assert calls(lambda: decided(large)) <= calls(lambda: decided(small)) + 10


def test_many_small_parts_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The total is bounded, even if each list is short."""
    monkeypatch.setattr(size, "MOST_PARTS", 200)
    message = decided(pod(containers=containers(90), initContainers=containers(90))).response
    assert message.allowed
    several = pod(
        containers=containers(90), initContainers=containers(90), ephemeralContainers=containers(90)
    )
    assert "has more than 200 lists and mappings" in decided(several).response.message


def test_long_names_are_shortened_in_messages() -> None:
    """A path contains keys that may each be as long as the object."""
    key = "k" * 1_000_000
    message = decided(pod(**{key: {key: {key: ["x"] * 2_000}}})).response.message
    assert "has 2000 entries" in message
    assert len(message) < 600


def test_what_was_as_large_before_passes_as_it_is() -> None:
    """A finalizer can be removed; a warning says that nothing is planned."""
    old = pod(containers=containers(200))
    new = {**old, "metadata": {**old["metadata"], "labels": {"team": "vision"}}}
    decision = decided(new, old)
    assert decision.response.allowed
    assert not decision.response.patch
    assert any("was as large before" in warning for warning in decision.response.warnings)


def test_an_update_that_makes_it_too_large_is_refused() -> None:
    """The new size counts."""
    assert not decided(pod(containers=containers(200)), pod()).response.allowed


def test_other_kinds_are_not_bounded() -> None:
    """A ConfigMap may have as many keys as the API server stores."""
    data = {f"k{number}": "" for number in range(5_000)}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "spec": data}
    assert decided(obj).response.allowed
