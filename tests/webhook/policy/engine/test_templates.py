"""Pod policies on the pod templates of workloads: shown as a Pod, written back as a template."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webhook.policy.helpers import (
    OURS,
    UPSTREAM,
    Inputs,
    apply,
    deployment,
    evaluations,
    mutate,
    mutating,
    operations,
    patch,
    pod,
)

SET = patch('[JSONPatch{op: "add", path: "/spec/schedulerName", value: "kai-scheduler"}]')
LABEL = apply('Object{metadata: Object.metadata{labels: {"seen": object.metadata.namespace}}}')


def inputs(*paths: tuple[Any, ...], **fields: Any) -> Inputs:
    """A caller that knows where the templates are."""
    templates = [(path, f"set-{index}") for index, path in enumerate(paths or [("spec", "template")])]
    return Inputs(frozenset({"gang", "plan"}), paths=templates, **fields)


def test_a_pod_policy_mends_the_template_of_a_workload() -> None:
    """The patch lies under the template's path, and the template has no namespace of its own."""
    mutated = mutate([mutating(SET, LABEL, api=OURS)], deployment(), inputs())
    template = mutated.object["spec"]["template"]
    assert template["spec"]["schedulerName"] == "kai-scheduler"
    assert template["metadata"] == {"labels": {"app": "web", "seen": "default"}}
    assert set(template) == {"metadata", "spec"}
    assert {operation["path"] for operation in operations(mutated)} == {
        "/spec/template/spec/schedulerName",
        "/spec/template/metadata/labels/seen",
    }


def test_an_upstream_policy_leaves_templates_alone_unless_it_says_otherwise() -> None:
    """A template has no name and no owner, and the policy was not written for that."""
    policy = mutating(SET, api=UPSTREAM)
    assert mutate([policy], deployment(), inputs()).effects == ()
    policy["metadata"]["annotations"] = {"bayplan.dev/templates": "true"}
    assert len(mutate([policy], deployment(), inputs()).effects) == 1


def test_a_mended_template_needs_nothing_more_when_its_pod_arrives() -> None:
    """The same policy on the pod that the template makes changes nothing."""
    policies = [mutating(SET, api=OURS)]
    template = mutate(policies, deployment(), inputs()).object["spec"]["template"]
    arrived = {
        "apiVersion": "v1",
        "kind": "Pod",
        **template,
        "metadata": {"name": "web-1", **template["metadata"]},
    }
    assert mutate(policies, arrived, inputs(())).effects == ()


def test_a_pod_itself_is_mutated_once() -> None:
    """Its template is the object, which matches as such."""
    grow = patch('[JSONPatch{op: "add", path: "/spec/containers/-", value: {"name": "b", "image": "x:1"}}]')
    mutated = mutate([mutating(grow, api=OURS)], pod(), inputs(()))
    assert len(mutated.object["spec"]["containers"]) == 2


def test_every_template_is_mended_with_its_own_pod_set() -> None:
    """The caller is asked for the object as the policy found it and the PodSet at hand: all templates of one
    object see the same gang, whatever the policy has written into the ones before."""
    asked: list[tuple[str, str]] = []

    def values(obj: Any, pod_set: str) -> dict[str, Any]:
        asked.append((obj["spec"]["head"]["spec"].get("schedulerName", "none"), pod_set))
        return {"gang": {"podSet": pod_set}}

    ray = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "r"},
        "spec": {"head": {"spec": pod()["spec"]}, "groups": [{"template": {"spec": pod()["spec"]}}]},
    }
    name = patch('[JSONPatch{op: "add", path: "/spec/schedulerName", value: gang.podSet}]')
    paths = (("spec", "head"), ("spec", "groups", 0, "template"))
    mutated = mutate([mutating(name, api=OURS)], ray, inputs(*paths, values=values))
    assert mutated.object["spec"]["head"]["spec"]["schedulerName"] == "set-0"
    assert mutated.object["spec"]["groups"][0]["template"]["spec"]["schedulerName"] == "set-1"
    by_name = [call for call in asked if type(call[1]) is str]  # else a stand-in
    assert by_name == [("none", "set-0"), ("none", "set-1")]


def test_the_request_shows_pods_and_the_operation_of_the_original() -> None:
    """An update of a workload brings new templates, so a policy for created pods looks at them too."""
    tell = apply(
        'Object{metadata: Object.metadata{labels: {"r": request.resource.resource, "o": request.operation}}}'
    )
    mutated = mutate(
        [mutating(tell, api=OURS)], deployment(), inputs(), operation="UPDATE", old_object=deployment(2)
    )
    assert mutated.object["spec"]["template"]["metadata"]["labels"] == {
        "app": "web",
        "r": "pods",
        "o": "UPDATE",
    }


def test_a_subresource_has_no_templates_to_mend() -> None:
    """A Deployment's status or scale is no occasion."""
    mutated = mutate([mutating(SET, api=OURS)], deployment(), inputs(), sub_resource="status")
    assert mutated.effects == ()


def test_a_template_without_metadata_gets_none_for_being_looked_at() -> None:
    """The namespace that was shown goes away again."""
    obj = deployment()
    del obj["spec"]["template"]["metadata"]
    template = mutate([mutating(SET, api=OURS)], obj, inputs()).object["spec"]["template"]
    assert set(template) == {"spec"}


def test_a_path_that_leads_nowhere_is_passed_over() -> None:
    """A malformed workload is told of elsewhere."""
    mutated = mutate([mutating(SET, api=OURS)], deployment(), inputs(("spec", "nothing", 3, "template")))
    assert (mutated.effects, mutated.errors) == ((), ())


def test_a_fact_that_cannot_be_had_fails_the_expression_in_words() -> None:
    """A malformed workload raises while its gang is read."""

    def values(obj: Any, pod_set: str) -> dict[str, Any]:
        raise ValueError("spec.replicas must be a number")

    read = patch("gang.size > 1 ? [] : []")
    (error,) = mutate([mutating(read, api=OURS)], deployment(), inputs(values=values)).errors
    assert error.message == "gang is not available: spec.replicas must be a number"


def test_no_plan_is_null() -> None:
    """An object that needs none; a policy asks `plan != null`."""
    read = patch('plan != null ? [] : [JSONPatch{op: "add", path: "/spec/nodeName", value: "x"}]')
    mutated = mutate([mutating(read, api=OURS)], deployment(), inputs(values=lambda obj, pod_set: {}))
    assert mutated.object["spec"]["template"]["spec"]["nodeName"] == "x"


def test_labels_that_a_policy_takes_away_stay_away() -> None:
    """Though nothing else is left of the template's metadata."""
    take = patch('[JSONPatch{op: "remove", path: "/metadata/labels"}]')
    template = mutate([mutating(take, api=OURS)], deployment(), inputs()).object["spec"]["template"]
    assert template["metadata"] == {}


def roles(*images: str) -> dict[str, Any]:
    """A kind with a template for each image, alike but for that."""
    rows = [{"spec": {"containers": [{"name": "main", "image": image}]}} for image in images]
    return {
        "apiVersion": "example.com/v1",
        "kind": "Roles",
        "metadata": {"name": "r"},
        "spec": {"roles": rows},
    }


def evaluated(monkeypatch: pytest.MonkeyPatch, text: str, *images: str) -> tuple[list[str], list[Any]]:
    """The labels of what was evaluated, and the templates, of a policy with this mutation on `roles`."""
    labels = evaluations(monkeypatch)
    paths = [("spec", "roles", index) for index in range(len(images))]
    caller = inputs(*paths, values=lambda obj, pod_set: {"gang": {"podSet": pod_set, "size": 3}})
    mutated = mutate([mutating(patch(text), api=OURS)], roles(*images), caller)
    return labels, mutated.object["spec"]["roles"]


def test_templates_that_are_alike_are_mended_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that looks at what differs runs once for all (that tells that it looks), then once for each of
    the few kinds of templates; each gets a map of its own all the same."""
    name = '[JSONPatch{op: "add", path: "/spec/schedulerName", value: object.spec.containers[0].image}]'
    labels, templates = evaluated(monkeypatch, name, "a", "a", "b", "a")
    assert [template["spec"]["schedulerName"] for template in templates] == ["a", "a", "b", "a"]
    assert len(labels) == 1 + 2
    assert len({id(template) for template in templates}) == 4


def test_templates_that_are_alike_are_mended_each_where_the_pod_set_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is a PodSet's own is read anew for each, once it is seen to be read."""
    name = '[JSONPatch{op: "add", path: "/spec/schedulerName", value: gang.podSet}]'
    labels, templates = evaluated(monkeypatch, name, "a", "a", "a")
    assert [template["spec"]["schedulerName"] for template in templates] == ["set-0", "set-1", "set-2"]
    assert len(labels) == 1 + 3
