"""A policy that does nothing to new objects of a form is left out for later ones; the result is the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.webhook.policy.helpers import (
    OURS,
    PODS,
    Inputs,
    Json,
    apply,
    binding,
    check,
    deployment,
    loaded,
    mutating,
    pod,
    validating,
)
from webhook.policy import Findings, Mutated, PolicySet, from_object, run_mutating, run_validating
from webhook.policy.engine.forms.equal_objects import MAX_CONTEXTS, MAX_OUTCOMES, EqualObjects
from webhook.policy.engine.policy_pass import PolicyPass
from webhook.policy.engine.targets import Target
from webhook.policy.model.policy import Policy

KAI = apply('Object{spec: Object.spec{schedulerName: "kai"}}')
NEVER = [{"name": "never", "expression": "object.metadata.namespace == 'nowhere'"}]
OF_TEAM_B = {"matchLabels": {"team": "b"}}
COSTLY = "lists.range(50).all(n, n >= 0 && object.kind == 'Pod')"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}


def named_pod(name: str, namespace: str = "default", **metadata: Any) -> Json:
    """A pod of this name, as the API server sends it."""
    return {**pod(), "metadata": {"name": name, "namespace": namespace, **metadata}}


def parameters(name: str, key: str, namespace: str = "default") -> Json:
    """A ConfigMap with a value and the label `of: mine`."""
    metadata = {"name": name, "namespace": namespace, "labels": {"of": "mine"}}
    return {**CONFIG_MAP, "metadata": metadata, "data": {"key": key}}


class Objects:
    """Parameter objects that a caller provides."""

    def __init__(self, *objects: Json) -> None:
        self.all = objects

    def objects(self, kind: object) -> Sequence[Json]:
        return self.all


@pytest.fixture
def inputs() -> Inputs:
    """A caller whose requests share outcomes."""
    return Inputs(equal_objects=EqualObjects())


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the policies that are begun from now on, whatever they match."""
    names: list[str] = []
    targets = PolicyPass.targets

    def noting(self: PolicyPass, policy: Policy, obj: Mapping[str, Any] | None) -> list[Target]:
        names.append(policy.name)
        return targets(self, policy, obj)

    monkeypatch.setattr(PolicyPass, "targets", noting)
    return names


def mutated(policies: PolicySet, obj: Json, inputs: Inputs, **request: Any) -> Mutated:
    """The result of the mutating policies."""
    return run_mutating(policies, from_object(obj, **request), obj, inputs)


def validated(policies: PolicySet, obj: Json, inputs: Inputs, **request: Any) -> Findings:
    """The result of the validating policies."""
    return run_validating(policies, from_object(obj, **request), obj, inputs)


@pytest.mark.parametrize(
    "policy",
    [
        mutating(KAI, matchConditions=NEVER),
        mutating(KAI, matchConditions=[*NEVER, {"name": "reads", "expression": "request.name == 'b'"}]),
        mutating(KAI, rule={**PODS, "resources": ["services"]}),
        mutating(apply("Object{}")),
    ],
)
def test_a_mutating_policy_that_changes_nothing_is_begun_once(
    policy: Json, begun: list[str], inputs: Inputs
) -> None:
    """Whether its conditions do not hold, its rules do not match, or its mutation leaves the pod as it is."""
    policies = loaded(policy)
    assert not any(mutated(policies, named_pod(name), inputs).effects for name in "abc")
    assert len(begun) == 1


@pytest.mark.parametrize(
    "policy",
    [
        validating(check("true")),
        validating(check("false"), matchConditions=NEVER),
        validating(check("false"), rule={**PODS, "resources": ["services"]}),
    ],
)
def test_a_validating_policy_that_passes_is_begun_once(
    policy: Json, begun: list[str], inputs: Inputs
) -> None:
    """Each request gets what the first one got."""
    policies = loaded(policy)
    results = [validated(policies, named_pod(name), inputs) for name in "abc"]
    assert results == [results[0]] * 3
    assert not results[0].denials
    assert len(begun) == 1


@pytest.mark.parametrize(
    "policy",
    [
        mutating(KAI),
        mutating(apply("Object{spec: Object.spec{hostname: object.metadata.name}}")),
        mutating(apply("Object{spec: Object.spec{hostname: object.spec.nodeName}}")),
        mutating(KAI, rule={**PODS, "resourceNames": ["other"]}),
        mutating(KAI, matchConstraints={"resourceRules": [PODS], "objectSelector": OF_TEAM_B}),
        mutating(KAI, matchConditions=[{"name": "reads", "expression": "request.name == 'other'"}]),
    ],
)  # fmt: skip
def test_any_other_policy_is_begun_for_each_pod(policy: Json, begun: list[str], inputs: Inputs) -> None:
    """It changes the pod or fails, or its effect depends on a name, on labels, or on the request."""
    policies = loaded(policy)
    for name in "abc":
        mutated(policies, named_pod(name), inputs)
    assert len(begun) == 3


def test_a_policy_without_an_effect_on_a_former_pod_changes_one_that_its_rules_name(inputs: Inputs) -> None:
    """The form of a pod hides the name, which the rule reads."""
    policies = loaded(mutating(KAI, rule={**PODS, "resourceNames": ["b"]}))
    changed = [bool(mutated(policies, named_pod(name), inputs).effects) for name in "abab"]
    assert changed == [False, True, False, True]


def test_a_policy_without_an_effect_on_a_former_pod_changes_one_that_its_binding_selects(
    inputs: Inputs,
) -> None:
    """The form of a pod hides labels, which the selector reads."""
    policy = mutating(KAI)
    select = {"objectSelector": OF_TEAM_B}
    policies = loaded(policy, binding(policy, matchResources=select))
    changed = [bool(mutated(policies, named_pod("p", labels={"team": t}), inputs).effects) for t in "abab"]
    assert changed == [False, True, False, True]


def test_a_policy_without_an_effect_in_one_namespace_has_one_in_another(inputs: Inputs) -> None:
    """Neither the pod nor a Namespace object tells the namespace, whose parameters the policy reads."""
    policy = mutating(
        KAI, matchConditions=[{"name": "key", "expression": "params.data.key == 'on'"}], paramKind=CONFIG_MAP
    )
    refer = {"name": "p", "parameterNotFoundAction": "Deny"}
    params = Objects(parameters("p", "off", "x"), parameters("p", "on", "y"))
    policies, own = loaded(policy, binding(policy, paramRef=refer)), replace(inputs, params=params)
    changed = [bool(mutated(policies, pod(), own, namespace=space).effects) for space in "xyxy"]
    assert changed == [False, True, False, True]


def test_a_policy_without_an_effect_on_a_template_has_one_in_another_namespace(inputs: Inputs) -> None:
    """Neither the Deployment nor the Namespace object tells the name of the namespace, but policies see it in
    the template.
    """
    condition = [{"name": "namespace", "expression": "object.metadata.namespace == 'y'"}]
    policies = loaded(mutating(KAI, api=OURS, matchConditions=condition))
    own = replace(inputs, paths=((("spec", "template"), "main"),))
    namespaces = [{"namespace": space, "namespace_object": {"metadata": {}}} for space in "xyxy"]
    changed = [bool(mutated(policies, deployment(), own, **space).effects) for space in namespaces]
    assert changed == [False, True, False, True]


def test_a_policy_without_an_effect_has_one_when_its_parameters_change(inputs: Inputs) -> None:
    """And fails when they are gone."""
    policy = mutating(
        KAI, matchConditions=[{"name": "key", "expression": "params.data.key == 'on'"}], paramKind=CONFIG_MAP
    )
    policies = loaded(policy, binding(policy, paramRef={"name": "p", "parameterNotFoundAction": "Deny"}))

    def with_params(*objects: Json) -> Mutated:
        return mutated(policies, named_pod("a"), replace(inputs, params=Objects(*objects)))

    off = parameters("p", "off")
    assert not with_params(off).effects
    assert with_params(parameters("p", "on")).effects
    assert not with_params(off).effects
    assert "was not found" in with_params().errors[0].message


def test_a_policy_without_an_effect_has_one_when_gang_has_another_content(inputs: Inputs) -> None:
    """`gang` may depend on other objects."""
    policies = loaded(
        mutating(KAI, api=OURS, matchConditions=[{"name": "queue", "expression": "gang.queue == 'b'"}])
    )

    def in_queue(queue: str) -> bool:
        values: Any = lambda obj, pod_set: {"gang": {"queue": queue}}  # noqa: E731
        own = replace(inputs, variable_names=frozenset({"gang"}), values=values)
        return bool(mutated(policies, named_pod("a"), own).effects)

    assert [in_queue(queue) for queue in "abab"] == [False, True, False, True]


def test_a_policy_is_not_taken_for_its_former_version(inputs: Inputs) -> None:
    """Policies are loaded again when their files change."""
    for namespace, effects in (("nowhere", 0), ("default", 1), ("nowhere", 0)):
        condition = [{"name": "there", "expression": f"object.metadata.namespace == '{namespace}'"}]
        policies = loaded(mutating(KAI, matchConditions=condition))
        assert len(mutated(policies, named_pod("a"), inputs).effects) == effects


def test_a_pod_costs_the_same_whether_its_policies_are_left_out_or_not(inputs: Inputs) -> None:
    """The cost is that of the conditions and of the other expressions."""
    policies = loaded(
        mutating(KAI, matchConditions=NEVER),
        mutating(KAI, name="other"),
        validating(check("object.kind == 'Pod'")),
    )
    first, *later = [mutated(policies, named_pod(name), inputs).cost for name in "abc"]
    assert first > 0
    assert later == [first] * 2
    first, *later = [validated(policies, named_pod(name), inputs).cost for name in "abc"]
    assert first > 0
    assert later == [first] * 2


@pytest.mark.parametrize(
    "policy",
    [
        validating(check(COSTLY)),
        validating(check("false"), matchConditions=[{"name": "costly", "expression": f"!{COSTLY}"}]),
    ],
)
def test_a_policy_that_costs_more_than_the_budget_of_a_request_is_run(policy: Json, inputs: Inputs) -> None:
    """The pod is refused, though the policy did nothing under a larger budget."""
    policies = loaded(policy)
    assert not validated(policies, named_pod("a"), inputs).errors
    assert validated(policies, named_pod("a"), replace(inputs, budget=10)).errors


def test_the_records_of_a_form_are_bounded(inputs: Inputs) -> None:
    """They have a bound although there may be any number of namespaces."""
    policies = loaded(mutating(KAI, matchConditions=NEVER))
    for number in range(3 * MAX_CONTEXTS):
        obj = named_pod("a")
        mutated(policies, obj, inputs, namespace_object={"metadata": {"name": f"n{number}"}})
    assert inputs.equal_objects is not None
    assert [len(form.no_effects) <= MAX_CONTEXTS for form in inputs.equal_objects.forms.values()] == [True]


def test_the_records_of_former_policies_are_removed(inputs: Inputs) -> None:
    """Policies are loaded again when their files change, and pods of one form go on coming."""
    policies = loaded(mutating(KAI, matchConditions=NEVER))
    for _ in range(MAX_OUTCOMES + 1):
        again = replace(policies, mutating=tuple(map(replace, policies.mutating)))
        mutated(again, named_pod("a"), inputs)
    assert inputs.equal_objects is not None
    (form,) = inputs.equal_objects.forms.values()
    assert sum(map(len, form.no_effects.values())) <= MAX_OUTCOMES


CONDITIONS = [
    "object.metadata.namespace == 'x'",
    "object.metadata.name == 'a'",
    "has(object.metadata.labels) && object.metadata.labels.team == 'b'",
    "has(object.spec.schedulerName) && object.spec.schedulerName == 'kai'",
    "params.data.key == 'on'",
    "request.name == 'a'",
    "plan.decision == 'admitted'",
    "object.metadata.namespace == 'x' && authorizer.group('').resource('pods').check('get').errored()",
    "gang.queue == 'q'",
    "namespaceObject.metadata.labels.tier == 'gold'",
    "object.spec.nodeName == 'x'",
]
MATCHES: list[Json] = [
    {},
    {"objectSelector": OF_TEAM_B},
    {"namespaceSelector": {"matchLabels": {"tier": "gold"}}},
    {"excludeResourceRules": [{**PODS, "resourceNames": ["b"]}]},
]
BINDINGS: list[Json] = [*MATCHES, {"resourceRules": [{**PODS, "resourceNames": ["b"]}]}]


def policy_with_binding(
    number: int, kind: str, condition: str | None, match: Json, of_binding: Json, ignores: bool
) -> list[Json]:
    """A policy and its binding, which refers to all parameters of the namespace."""
    spec: Json = {"matchConstraints": {"resourceRules": [PODS], **match}, "paramKind": CONFIG_MAP}
    spec |= {"failurePolicy": "Ignore"} if ignores else {}
    spec |= {"matchConditions": [{"name": "drawn", "expression": condition}]} if condition else {}
    if kind == "mutate":
        policy = mutating(KAI, name=f"p{number}", api=OURS, **spec)
    else:
        spec["auditAnnotations"] = [{"key": "where", "valueExpression": "object.metadata.namespace"}]
        policy = validating(check(condition or "true"), name=f"p{number}", api=OURS, **spec)
    refer = {"selector": {"matchLabels": {"of": "mine"}}, "parameterNotFoundAction": "Deny"}
    selects = {"matchResources": of_binding} if of_binding else {}
    return [policy, binding(policy, name=f"b{number}", paramRef=refer, **selects)]


DRAWN = st.tuples(
    st.sampled_from(["mutate", "validate"]), st.sampled_from([None, *CONDITIONS]),
    st.sampled_from(MATCHES), st.sampled_from(BINDINGS), st.booleans(),
)  # fmt: skip
FIELDS = {
    "name": ["a", "b"], "namespace": ["x", "y"], "team": ["", "b"], "key": ["on", "off"], "queue": ["q", "r"],
    "tier": ["gold", "tin"], "decision": ["admitted", "queued"],
}  # fmt: skip
CHANGES = st.lists(st.sampled_from([*FIELDS]), min_size=1, max_size=8)
PARAMETERS = {(key, space): parameters("p", key, space) for key in ("on", "off") for space in "xy"}


@settings(max_examples=300)
@given(drawn=st.lists(DRAWN, min_size=1, max_size=3), changes=CHANGES)
def test_requests_that_share_outcomes_end_as_each_would_alone(
    drawn: list[tuple[Any, ...]], changes: list[str]
) -> None:
    """Whatever the policies read and match: the result is that of a run on the pod, and the cost that of a
    first request. Each request differs in one value from the one before.
    """
    documents = [
        document for number, row in enumerate(drawn) for document in policy_with_binding(number, *row)
    ]
    policies, shared = loaded(*documents), EqualObjects()
    values = {field: options[0] for field, options in FIELDS.items()}
    for change in [None, *changes]:
        if change is not None:
            values[change] = next(value for value in FIELDS[change] if value != values[change])
        labels = {"labels": {"team": values["team"]}} if values["team"] else {}
        obj = named_pod(values["name"], values["namespace"], **labels)
        labels_of_namespace = {"name": values["namespace"], "labels": {"tier": values["tier"]}}
        variables = {"gang": {"queue": values["queue"]}, "plan": {"decision": values["decision"]}}
        own = Inputs(
            variable_names=frozenset(variables),
            values=lambda obj, pod_set, variables=variables: variables,
            params=Objects(PARAMETERS[values["key"], values["namespace"]]),
        )
        for run in (mutated, validated):
            alone, first, later = (
                run(
                    policies, obj, replace(own, equal_objects=each),
                    namespace_object={"metadata": labels_of_namespace},
                )
                for each in (None, EqualObjects(), shared)
            )  # fmt: skip
            assert later == first
            assert replace(later, cost=0) == replace(alone, cost=0)
