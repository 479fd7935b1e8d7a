"""New pods that are equal but for values that vary share the outcomes of policies, with the same result."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

import pytest

from tests.webhook.policy.helpers import (
    OURS,
    Inputs,
    Json,
    apply,
    binding,
    check,
    evaluations,
    loaded,
    mutating,
    patch,
    pod,
    validating,
)
from webhook.cel.values.stand_in import StandIn
from webhook.policy import Findings, Mutated, PolicySet, from_object, run_mutating, run_validating
from webhook.policy.engine.forms.equal_objects import (
    MAX_BYTES,
    MAX_FORMS,
    MAX_OUTCOMES,
    MAX_STAND_INS,
    EqualObjects,
)
from webhook.policy.engine.forms.form import Form
from webhook.policy.engine.sharing.shared_runs import RUN_LIMIT
from webhook.workloads.keys.annotation_keys import PLACEMENT

GPUS = "object.spec.containers.exists(c, c.name == 'main')"
ESCAPED = PLACEMENT.replace("/", "~1")
COPY_NAME = apply("Object{spec: Object.spec{hostname: object.metadata.name + 'x'}}")
KAI = apply('Object{spec: Object.spec{schedulerName: "kai"}}')


def named_pod(name: str, **metadata: Any) -> Json:
    """A pod of this name, as the API server sends it."""
    written = {"uid": f"uid-of-{name}", "creationTimestamp": "2026-11-28T00:00:00Z"}
    return {**pod(), "metadata": {"name": name, "namespace": "default", **written, **metadata}}


@pytest.fixture
def inputs() -> Inputs:
    """A caller whose requests share outcomes."""
    return Inputs(equal_objects=EqualObjects())


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of the expressions that are evaluated from now on."""
    return evaluations(monkeypatch)


def mutated(policies: PolicySet, obj: Json, inputs: Inputs, **request: Any) -> Mutated:
    """The result of the mutating policies."""
    return run_mutating(policies, from_object(obj, **request), obj, inputs)


def validated(policies: PolicySet, obj: Json, inputs: Inputs, **request: Any) -> Findings:
    """The result of the validating policies."""
    return run_validating(policies, from_object(obj, **request), obj, inputs)


def test_a_mutation_of_equal_pods_is_evaluated_once(evaluated: list[str], inputs: Inputs) -> None:
    """Each pod gets the change, and keeps its name."""
    policies = loaded(mutating(KAI, matchConditions=[{"name": "gpus", "expression": GPUS}]))
    for name in ("a", "b", "c"):
        changed = mutated(policies, named_pod(name), inputs).object
        assert (changed["metadata"]["name"], changed["spec"]["schedulerName"]) == (name, "kai")
    assert len(evaluated) == 2, evaluated


def test_a_condition_that_does_not_hold_is_evaluated_once(evaluated: list[str], inputs: Inputs) -> None:
    """Then the mutation is not evaluated at all."""
    policies = loaded(mutating(KAI, matchConditions=[{"name": "none", "expression": f"!{GPUS}"}]))
    assert not any(mutated(policies, named_pod(name), inputs).effects for name in ("a", "b", "c"))
    assert len(evaluated) == 1, evaluated


def test_a_validation_of_equal_pods_is_evaluated_once(evaluated: list[str], inputs: Inputs) -> None:
    """Each request says that the policy passed."""
    policies = loaded(validating(check(GPUS)))
    assert [validated(policies, named_pod(name), inputs).passed for name in ("a", "b")] == [("validate",)] * 2
    assert len(evaluated) == 1, evaluated


def test_each_pod_gets_the_findings_about_itself(inputs: Inputs) -> None:
    """A finding is never taken over from another pod."""
    policies = loaded(validating(check("false", messageExpression='"not " + object.metadata.name')))
    for name in ("a", "b"):
        assert validated(policies, named_pod(name), inputs).denials[0].message == f"not {name}"


def test_each_pod_gets_the_findings_that_are_the_same_for_all(inputs: Inputs) -> None:
    """Such a finding is not taken for a pass."""
    policies = loaded(validating(check("false", message="no")))
    assert [validated(policies, named_pod(name), inputs).denials[0].message for name in "abc"] == ["no"] * 3


def test_each_pod_gets_the_audit_annotations_that_are_the_same_for_all(inputs: Inputs) -> None:
    """A policy that passes may have them."""
    annotations = [{"key": "what", "valueExpression": "'a pod'"}]
    policies = loaded(validating(check("true"), auditAnnotations=annotations))
    for name in ("a", "b"):
        assert validated(policies, named_pod(name), inputs).audit_annotations == {"validate.what": "a pod"}


def test_each_pod_gets_its_own_audit_annotations(inputs: Inputs) -> None:
    """They may name the pod."""
    annotations = [{"key": "who", "valueExpression": "object.metadata.name"}]
    policies = loaded(validating(check("true"), auditAnnotations=annotations))
    for name in ("a", "b"):
        assert validated(policies, named_pod(name), inputs).audit_annotations == {"validate.who": name}


@pytest.mark.parametrize(
    "expression",
    [
        '[JSONPatch{op: "add", path: "/metadata/labels", value: {"app": object.metadata.name}}]',
        '[JSONPatch{op: "copy", from: "/metadata/name", path: "/spec/hostname"}]',
        """[JSONPatch{op: "test", path: "/metadata/name", value: "a"},
            JSONPatch{op: "add", path: "/spec/hostname", value: "a"}]""",
        'object.metadata.name == "a" ? [JSONPatch{op: "add", path: "/spec/hostname", value: "a"}] : []',
        'gang.name == "a" ? [JSONPatch{op: "add", path: "/spec/hostname", value: "a"}] : []',
        'request.name == "a" ? [JSONPatch{op: "add", path: "/spec/hostname", value: "a"}] : []',
        'object.metadata.uid == "uid-of-a" ? [JSONPatch{op: "add", path: "/spec/hostname", value: "a"}] : []',
    ],
)
def test_a_mutation_that_reads_the_name_is_evaluated_for_each_pod(expression: str, inputs: Inputs) -> None:
    """So is a patch that copies or compares the name, and a policy that reads the request."""
    policies = loaded(mutating(patch(expression), api=OURS))
    own = replace(inputs, variable_names=frozenset({"gang"}), values=gang_of)
    alone = replace(own, equal_objects=None)
    for name in ("a", "b", "a"):
        assert (
            mutated(policies, named_pod(name), own).object == mutated(policies, named_pod(name), alone).object
        )


TWO = [{"name": "main", "image": "a:1", "args": ["--a"]}, {"name": "side", "image": "b:1", "env": []}]


@pytest.mark.parametrize(
    "expression",
    [
        '[JSONPatch{op: "replace", path: "/spec/containers/0/name", value: "trainer"}]',
        '[JSONPatch{op: "remove", path: "/spec/containers/0/name"}]',
        """[JSONPatch{op: "replace", path: "/spec/containers/0/name", value: "side"},
            JSONPatch{op: "replace", path: "/spec/containers/1/name", value: "main"}]""",
        """[JSONPatch{op: "replace", path: "/spec/containers/0/name", value: "side"},
            JSONPatch{op: "remove", path: "/spec/containers/1"}]""",
        """[JSONPatch{op: "move", from: "/spec/containers", path: "/spec/initContainers"},
            JSONPatch{op: "copy", from: "/spec/initContainers", path: "/spec/containers"}]""",
    ],
)
@pytest.mark.parametrize("count", [1, 2])
def test_a_container_that_a_policy_renames_keeps_what_it_runs(
    expression: str, count: int, inputs: Inputs
) -> None:
    """It is written as a new one, with the values of the pod at hand."""
    policies = loaded(
        mutating(patch(expression), api=OURS, failurePolicy="Ignore"), mutating(KAI, api=OURS, name="next")
    )
    alone = replace(inputs, equal_objects=None)
    for name in ("a", "b"):
        obj = named_pod(name)
        obj["spec"] = {"containers": [{**container, "command": [name]} for container in TWO[:count]]}
        shared = mutated(policies, obj, inputs)
        assert shared == mutated(policies, obj, alone)
        assert json.dumps(shared.object)


@pytest.mark.parametrize(
    ("expression", "is_shared"),
    [
        (
            '[JSONPatch{op: "add", path: "/metadata", value: labels.add(object.metadata, {"queue": "q"})}]',
            True,
        ),
        ('[JSONPatch{op: "replace", path: "/metadata/labels", value: object.metadata.labels}]', True),
        (
            """[JSONPatch{op: "test", path: "/metadata/labels", value: object.metadata.labels},
                JSONPatch{op: "remove", path: "/metadata/labels/team"}]""",
            True,
        ),
        (
            """[JSONPatch{op: "add", path: "/metadata/labels",
                value: {"team": object.metadata.labels.owner, "owner": object.metadata.labels.team}}]""",
            False,
        ),
        ('[JSONPatch{op: "add", path: "/metadata/annotations", value: object.metadata.labels}]', False),
        ('[JSONPatch{op: "add", path: "/metadata/labels/third", value: object.metadata.labels.team}]', False),
        ('[JSONPatch{op: "copy", from: "/metadata/labels/team", path: "/metadata/labels/owner"}]', False),
        (
            '[JSONPatch{op: "test", path: "/metadata/labels/team", value: object.metadata.labels.owner}]',
            False,
        ),
    ],
)  # fmt: skip
def test_labels_that_a_patch_copies_are_those_of_the_pod(
    expression: str, is_shared: bool, evaluated: list[str], inputs: Inputs
) -> None:
    """A patch that leaves them where they are is evaluated once, any other one for each pod."""
    policies, alone = loaded(mutating(patch(expression), api=OURS)), replace(inputs, equal_objects=None)
    pods = [named_pod(name, labels={"team": name, "owner": f"{name}-owner"}) for name in ("a", "b", "c")]
    shared = [mutated(policies, obj, inputs).object for obj in pods]
    assert evaluated.count("spec.mutations[0].jsonPatch.expression") == (1 if is_shared else 4), evaluated
    assert shared == [mutated(policies, obj, alone).object for obj in pods]
    assert json.dumps(shared)


def test_a_policy_is_run_from_the_beginning_if_its_next_mutation_reads_the_name(inputs: Inputs) -> None:
    """Its first mutation sees the pod, and the `gang` of the pod, as they were."""
    policies = loaded(
        mutating(
            patch(
                """gang.labels.size() > 0 ? []
                    : [JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "b"}}]"""
            ),
            patch('[JSONPatch{op: "add", path: "/spec/hostname", value: object.metadata.name}]'),
            api=OURS,
        )
    )
    own = replace(inputs, variable_names=frozenset({"gang"}), values=gang_of)
    for name in ("a", "b"):
        changed = mutated(policies, named_pod(name), own).object
        assert (changed["metadata"]["labels"], changed["spec"]["hostname"]) == ({"a": "b"}, name)


def gang_of(obj: Mapping[str, Any], pod_set: str) -> Mapping[str, Any]:
    """The variable `gang` of a pod."""
    name = obj["metadata"]["name"]
    return {"gang": {"name": name, "labels": obj["metadata"].get("labels", {})}}


def with_labels(name: str) -> Json:
    return named_pod(name, labels={"team": name})


def on_host(name: str) -> Json:
    return {**named_pod("one"), "spec": {**pod()["spec"], "hostname": name}}


def on_node(name: str) -> Json:
    return {**named_pod("one"), "spec": {**pod()["spec"], "nodeSelector": {"kubernetes.io/hostname": name}}}


def of_image(name: str) -> Json:
    return {**named_pod("one"), "spec": {"containers": [{"name": "main", "image": f"{name}:1"}]}}


def with_env(name: str) -> Json:
    container = {**pod()["spec"]["containers"][0], "env": [{"name": "SEED", "value": name}]}
    return {**named_pod("one"), "spec": {"containers": [container]}}


def with_index(name: str) -> Json:
    return named_pod("one", labels={"batch.kubernetes.io/job-completion-index": name})


def of_replica_set(name: str) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
    return named_pod("one", ownerReferences=[owner])


def with_token(name: str) -> Json:
    """As the API server adds the volume of the ServiceAccount's token."""
    volume, mount = (
        {"name": f"kube-api-access-{name}"},
        {"name": f"kube-api-access-{name}", "mountPath": "/t"},
    )
    container = {**pod()["spec"]["containers"][0], "volumeMounts": [mount]}
    return {**named_pod("one"), "spec": {"containers": [container], "volumes": [volume]}}


def without_a_plan(name: str) -> Json:
    return named_pod("one", annotations={"note": name})


@pytest.mark.parametrize(
    ("make", "read"),
    [
        (with_labels, "object.metadata.labels.team"),
        (on_host, "object.spec.hostname"),
        (without_a_plan, "object.metadata.annotations.note"),
        (with_index, "object.metadata.labels['batch.kubernetes.io/job-completion-index']"),
        (of_replica_set, "object.metadata.ownerReferences[0].name"),
        (on_node, "object.spec.nodeSelector['kubernetes.io/hostname']"),
        (of_image, "object.spec.containers[0].image.split(':')[0]"),
        (with_env, "object.spec.containers[0].env[0].value"),
        (with_token, "object.spec.volumes[0].name.substring(16)"),
        (with_token, "object.spec.containers[0].volumeMounts[0].name.substring(16)"),
    ],
)
def test_a_value_in_which_pods_differ_is_read_from_the_pod_of_the_request(
    make: Callable[[str], Json], read: str, inputs: Inputs
) -> None:
    """Whether the pods count as equal or not."""
    value = f'[JSONPatch{{op: "add", path: "/spec/schedulerName", value: {read}}}]'
    policies = loaded(mutating(patch(value)))
    for name in ("a", "b", "a"):
        assert mutated(policies, make(name), inputs).object["spec"]["schedulerName"] == name


@pytest.mark.parametrize(
    "make", [with_labels, on_host, without_a_plan, of_image, with_env, with_index, of_replica_set, with_token]
)
def test_pods_are_equal_that_differ_in_what_hardly_any_policy_reads(
    make: Callable[[str], Json], evaluated: list[str], inputs: Inputs
) -> None:
    """Each keeps its own values."""
    policies = loaded(mutating(KAI))
    for name in ("a", "b"):
        expected = {**make(name), "spec": {**make(name)["spec"], "schedulerName": "kai"}}
        assert mutated(policies, make(name), inputs).object == expected
    assert len(evaluated) == 1


def test_a_volume_whose_name_is_the_mark_of_a_stand_in_is_not_taken_for_that_of_a_token(
    inputs: Inputs,
) -> None:
    """Otherwise what a policy makes of that name would be written onto other pods."""
    policies = loaded(
        mutating(
            patch('[JSONPatch{op: "add", path: "/spec/schedulerName", value: object.spec.volumes[0].name}]')
        )
    )
    marked = {**named_pod("one"), "spec": {**pod()["spec"], "volumes": [{"name": "stand-in"}]}}
    token = {**named_pod("one"), "spec": {**pod()["spec"], "volumes": [{"name": "kube-api-access-a"}]}}
    for obj in (marked, token, marked):
        assert (
            mutated(policies, obj, inputs).object["spec"]["schedulerName"]
            == obj["spec"]["volumes"][0]["name"]
        )


def test_images_with_other_pull_policies_are_not_equal(inputs: Inputs) -> None:
    """An image without a tag is always pulled: that default is what the policy reads."""
    read = patch(
        """[JSONPatch{op: "add", path: "/spec/schedulerName",
            value: object.spec.containers[0].imagePullPolicy}]"""
    )
    policies = loaded(mutating(read))
    for image, expected in (("a:1", "IfNotPresent"), ("a", "Always"), ("b:1", "IfNotPresent")):
        obj = {**named_pod("one"), "spec": {"containers": [{"name": "main", "image": image}]}}
        assert mutated(policies, obj, inputs).object["spec"]["schedulerName"] == expected


def test_pods_in_namespaces_with_other_labels_are_not_equal(inputs: Inputs) -> None:
    """A policy may read the Namespace."""
    value = 'Object{spec: Object.spec{schedulerName: namespaceObject.metadata.labels["scheduler"]}}'
    policies = loaded(mutating(apply(value)))
    for name in ("kai", "volcano", "kai"):
        space = {"metadata": {"name": "default", "labels": {"scheduler": name}}}
        changed = mutated(policies, named_pod("a"), inputs, namespace_object=space).object
        assert changed["spec"]["schedulerName"] == name


def test_pods_with_other_content_of_gang_are_not_equal(inputs: Inputs) -> None:
    """`gang` may depend on other objects, so its content counts, even if the pods are equal."""
    policies = loaded(mutating(apply("Object{spec: Object.spec{schedulerName: gang.queue}}"), api=OURS))
    for queue in ("a", "b", "a"):
        values: Any = lambda obj, pod_set, queue=queue: {"gang": {"queue": queue}}  # noqa: E731
        own = replace(inputs, variable_names=frozenset({"gang"}), values=values)
        assert mutated(policies, named_pod("a"), own).object["spec"]["schedulerName"] == queue


def test_a_condition_on_gang_is_not_taken_over_from_another_state_of_the_pod(inputs: Inputs) -> None:
    """The first policy writes an annotation that is a stand-in, so the pod keeps its form; `gang` changes."""
    first = mutating(
        patch(f'[JSONPatch{{op: "add", path: "/metadata/annotations/{ESCAPED}", value: "x"}}]'),
        name="a-first",
        api=OURS,
        matchConditions=[{"name": "before", "expression": "gang.queue == 'before'"}],
    )
    second = mutating(
        KAI, name="b-second", api=OURS,
        matchConditions=[{"name": "before", "expression": "gang.queue == 'before'"}],
    )  # fmt: skip
    values: Any = lambda obj, pod_set: {"gang": {"queue": obj["metadata"]["annotations"][PLACEMENT]}}  # noqa: E731
    own = replace(inputs, variable_names=frozenset({"gang"}), values=values)
    for name in ("a", "b"):
        changed = mutated(
            loaded(first, second), named_pod(name, annotations={PLACEMENT: "before"}), own
        ).object
        assert "schedulerName" not in changed["spec"]


def test_an_equal_pod_of_other_parameters_has_an_outcome_of_its_own(inputs: Inputs) -> None:
    """One binding selects two objects of parameters."""
    policy = validating(check("params.data.key == 'a'"), paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    maps = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"of": "mine"}},
            "data": {"key": name},
        }
        for name in ("a", "b")
    ]
    select = {"selector": {"matchLabels": {"of": "mine"}}, "parameterNotFoundAction": "Deny"}
    policies = loaded(policy, binding(policy, paramRef=select), *maps)
    assert [len(validated(policies, named_pod(name), inputs).denials) for name in "ab"] == [1, 1]


def test_an_update_of_a_pod_shares_nothing(evaluated: list[str], inputs: Inputs) -> None:
    """Its policies may read `oldObject`."""
    rule = {"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    policies = loaded(mutating(KAI, rule=rule))
    for name in ("a", "b"):
        mutated(policies, named_pod(name), inputs, operation="UPDATE", old_object=named_pod(name))
    assert len(evaluated) == 2


def test_a_new_pod_with_an_old_object_shares_nothing(inputs: Inputs) -> None:
    """An API server sends none, but a policy could read it."""
    policies = loaded(mutating(apply("Object{spec: Object.spec{schedulerName: oldObject.spec.hostname}}")))
    for name in ("a", "b"):
        changed = mutated(policies, named_pod("one"), inputs, old_object=on_host(name)).object
        assert changed["spec"]["schedulerName"] == name


def test_pods_with_equal_defaults_are_not_equal_if_one_of_them_states_a_default(inputs: Inputs) -> None:
    """After a policy has changed the limits, the defaults for the requests differ."""
    policies = loaded(
        mutating(
            patch('[JSONPatch{op: "replace", path: "/spec/containers/0/resources/limits/cpu", value: "2"}]'),
            name="a-limits",
        ),
        mutating(
            patch(
                '[JSONPatch{op: "add", path: "/spec/hostname", value:'
                " object.spec.containers[0].resources.requests.cpu}]"
            ),
            name="b-requests",
        ),
    )
    stated = {"limits": {"cpu": "4"}, "requests": {"cpu": "4"}}
    for resources, expected in ((stated, "4"), ({"limits": {"cpu": "4"}}, "2"), (stated, "4")):
        container = {"name": "main", "image": "trainer", "resources": resources}
        obj = {**named_pod("one"), "spec": {"containers": [container]}}
        assert mutated(policies, obj, inputs).object["spec"]["hostname"] == expected


def test_the_cost_of_a_policy_does_not_depend_on_known_conditions(inputs: Inputs) -> None:
    """The second policy of pod `b` shares a condition with the first, whose outcome is known by then."""
    conditions = [{"name": "gpus", "expression": GPUS}]
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    policies = loaded(
        mutating(KAI, name="first", matchConditions=conditions),
        mutating(KAI, name="second", matchConditions=conditions, rule={**rule, "resourceNames": ["b"]}),
    )
    fresh = replace(inputs, equal_objects=EqualObjects())
    costs = []
    for each in (fresh, inputs):
        if each is inputs:
            mutated(policies, named_pod("a"), each)
        costs.append(mutated(policies, named_pod("b"), each).cost)
    assert costs[0] == costs[1]


def test_a_condition_on_parameters_costs_the_same_whatever_came_before(inputs: Inputs) -> None:
    """Its value is kept for all requests, with its cost."""
    text = "params.data.key.size() + " + "+".join(["1"] * 20) + " > 0"
    policy = mutating(
        KAI, matchConditions=[{"name": "parameters", "expression": text}],
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )  # fmt: skip
    parameters = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "p"},
        "data": {"key": "value"},
    }
    reference = {"name": "p", "parameterNotFoundAction": "Deny"}
    other = [{"name": "other", "expression": text.replace("params.data.key", "object.apiVersion")}]
    second = mutating(KAI, name="second", matchConditions=other)
    policies = loaded(policy, binding(policy, paramRef=reference), parameters, second)

    def refused(budget: int, each: Inputs) -> bool:
        return bool(mutated(policies, named_pod("a"), replace(each, budget=budget)).errors)

    alone, fresh = replace(inputs, equal_objects=None), replace(inputs, equal_objects=EqualObjects())
    outcomes = []
    for budget in range(0, 400, 4):
        first = refused(budget, alone)
        assert [refused(budget, each) for each in (alone, inputs, inputs, fresh)] == [first] * 4, budget
        outcomes.append(first)
    assert set(outcomes) == {True, False}


@pytest.mark.parametrize(
    ("key", "text"), [("k", "'text'"), ("", "lists.range(5119).map(n, 'é').join('') + 'aéb'")]
)
def test_joined_audit_annotations_are_those_of_a_run_on_the_pod(key: str, text: str, inputs: Inputs) -> None:
    """Two bindings run the policy. Its two keys are one when they are cut, and no text is there twice; a text
    is cut in the middle of a character."""
    name = "long".ljust(63, "g") if key else "short"
    keys = [{"key": f"k{n}", "valueExpression": text} for n in range(2 if key else 1)]
    policy = validating(check("true"), name=name, auditAnnotations=keys, api=OURS)
    policies = loaded(policy, *(binding(policy, name=each) for each in "ab"))
    alone = validated(policies, named_pod("a"), replace(inputs, equal_objects=None)).audit_annotations
    assert alone
    for pod_name in "ab":
        assert validated(policies, named_pod(pod_name), inputs).audit_annotations == alone


def test_a_costly_policy_is_run_on_each_pod(evaluated: list[str], inputs: Inputs) -> None:
    """Its conditions are evaluated once for all policies that share them, as they are without equal pods."""
    costly = f"lists.range({RUN_LIMIT}).all(n, n >= 0 && object.kind == 'Pod')"
    policies = loaded(mutating(KAI, matchConditions=[{"name": "costly", "expression": costly}], api=OURS))
    for name in ("a", "b"):
        assert mutated(policies, named_pod(name), inputs).effects
    assert evaluated.count("spec.matchConditions[0].expression") == 3, evaluated


def test_forms_are_not_kept_by_the_outcomes_of_other_forms(inputs: Inputs) -> None:
    """Otherwise their number would have no bound."""
    policies = loaded(mutating(KAI), mutating(apply('Object{spec: Object.spec{hostname: "h"}}'), name="n"))
    mutated(policies, named_pod("a"), inputs)
    assert inputs.equal_objects is not None
    for form in inputs.equal_objects.forms.values():
        assert not any(isinstance(each, Form) for each in reachable(form.outcomes))


def reachable(value: object) -> list[object]:
    """All objects that an object refers to, but for classes and modules."""
    seen: dict[int, object] = {}
    todo = [value]
    while todo:
        each = todo.pop()
        if id(each) not in seen and not isinstance(each, (type, ModuleType, FunctionType)):
            seen[id(each)] = each
            todo.extend(gc.get_referents(each))
    return list(seen.values())


@pytest.mark.parametrize(
    "policy",
    [
        mutating(COPY_NAME),
        mutating(KAI, COPY_NAME),
        mutating(COPY_NAME, matchConditions=[{"name": "gpus", "expression": GPUS}]),
    ],
)
def test_a_run_that_cannot_be_shared_costs_nothing(policy: Json, inputs: Inputs) -> None:
    """Each pod pays for the run on itself alone, also if the first mutation of the policy could be shared."""
    policies = loaded(policy)
    alone = mutated(policies, named_pod("a"), replace(inputs, equal_objects=None)).cost
    assert [mutated(policies, named_pod(name), inputs).cost for name in "abc"] == [alone] * 3


def test_a_pod_is_refused_for_the_cost_of_its_policies_whatever_came_before(inputs: Inputs) -> None:
    """An outcome that is known takes its units from the budget of each policy."""
    loop = "lists.range(50).all(n, n >= 0 && object.kind == 'Pod')"
    kai = patch(f'{loop} ? [JSONPatch{{op: "add", path: "/spec/schedulerName", value: "kai"}}] : []')
    policies = loaded(*(mutating(kai, name=f"p{n}") for n in range(9)))
    alone = replace(inputs, equal_objects=None)
    cost = mutated(policies, named_pod("a"), inputs).cost // 9
    refusals = []
    for budget in (cost // 2, cost - 1, cost, cost + 1):
        refused = bool(mutated(policies, named_pod("a"), replace(alone, budget=budget)).errors)
        shared = [
            bool(mutated(policies, named_pod(name), replace(inputs, budget=budget)).errors) for name in "abc"
        ]
        assert shared == [refused] * 3, budget
        refusals.append(refused)
    assert set(refusals) == {True, False}


def test_the_forms_that_were_not_used_for_the_longest_time_are_removed(
    evaluated: list[str], inputs: Inputs
) -> None:
    """A burst of equal pods keeps its outcomes while many other pods come."""
    policies = loaded(mutating(KAI))
    for number in range(MAX_FORMS):
        mutated(policies, on_node(f"node-{number}"), inputs)
        evaluated.clear()
        mutated(policies, named_pod("equal"), inputs)
        assert number == 0 or not evaluated
    assert inputs.equal_objects is not None
    assert len(inputs.equal_objects.forms) == MAX_FORMS


def test_a_large_pod_shares_nothing(evaluated: list[str], inputs: Inputs) -> None:
    """So large pods do not fill the memory."""
    policies = loaded(mutating(KAI), validating(check(GPUS)))
    large = on_node("x" * MAX_BYTES)
    for _ in range(2):
        assert mutated(policies, large, inputs).object["spec"]["schedulerName"] == "kai"
        assert validated(policies, large, inputs).passed
    assert len(evaluated) == 4
    assert inputs.equal_objects is not None
    assert not inputs.equal_objects.forms


def test_a_pod_of_many_labels_shares_nothing(inputs: Inputs) -> None:
    """To hide each of them would take longer than to run the policies."""
    policies = loaded(mutating(KAI))
    labels = {f"label-{number}": "x" for number in range(MAX_STAND_INS)}
    assert mutated(policies, named_pod("a", labels=labels), inputs).object["spec"]["schedulerName"] == "kai"
    assert inputs.equal_objects is not None
    assert not inputs.equal_objects.forms


def test_the_outcomes_of_a_form_are_bounded(inputs: Inputs) -> None:
    """They have a bound although `gang` may have any number of values."""
    policies = loaded(mutating(apply("Object{spec: Object.spec{schedulerName: gang.queue}}"), api=OURS))
    for number in range(MAX_OUTCOMES):
        values: Any = lambda obj, pod_set, number=number: {"gang": {"queue": f"q{number}"}}  # noqa: E731
        mutated(policies, named_pod("a"), replace(inputs, variable_names=frozenset({"gang"}), values=values))
    assert inputs.equal_objects is not None
    assert all(len(form.outcomes) <= MAX_OUTCOMES for form in inputs.equal_objects.forms.values())


def test_no_stand_in_is_left_in_a_pod(inputs: Inputs) -> None:
    """A policy that writes the metadata as a whole copies the values of the pod itself."""
    whole = '[JSONPatch{op: "add", path: "/metadata", value: object.metadata}]'
    policies = loaded(mutating(patch(whole)), mutating(KAI, name="named"))
    for name in ("a", "b"):
        changed = mutated(policies, named_pod(name, annotations={PLACEMENT: name}), inputs)
        assert not any(type(value) is StandIn for value in changed.object["metadata"].values())
        assert changed.object["metadata"] == named_pod(name, annotations={PLACEMENT: name})["metadata"]
