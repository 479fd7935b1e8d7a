"""The effect of a mutating policy on an object, in the cases that surprise users."""

from __future__ import annotations

import pytest

from tests.webhook.policy.helpers import (
    OURS,
    Inputs,
    apply,
    binding,
    deployment,
    loaded,
    mutate,
    mutating,
    operations,
    patch,
    pod,
)

SET_SCHEDULER = patch('[JSONPatch{op: "add", path: "/spec/schedulerName", value: "kai-scheduler"}]')


def test_a_failing_test_makes_its_mutation_a_silent_no_op() -> None:
    """The patch whose `test` does not hold does nothing and is no error; the next mutation runs."""
    never = patch(
        '[JSONPatch{op: "test", path: "/spec/schedulerName", value: "volcano"},'
        ' JSONPatch{op: "add", path: "/spec/priorityClassName", value: "high"}]'
    )
    mutated = mutate([mutating(never, SET_SCHEDULER)], pod())
    assert mutated.errors == ()
    assert "priorityClassName" not in mutated.object["spec"]
    assert mutated.object["spec"]["schedulerName"] == "kai-scheduler"


def test_a_test_that_holds_lets_the_rest_of_its_patch_run() -> None:
    """The default scheduler is there to be tested, because defaults are set before evaluation."""
    holds = patch(
        '[JSONPatch{op: "test", path: "/spec/schedulerName", value: "default-scheduler"},'
        ' JSONPatch{op: "replace", path: "/spec/schedulerName", value: "kai-scheduler"}]'
    )
    assert operations(mutate([mutating(holds)], pod())) == [
        {"op": "add", "path": "/spec/schedulerName", "value": "kai-scheduler"}
    ]


def test_replace_of_a_missing_key_adds_it() -> None:
    """As the API server's library has it, not as RFC 6902 does."""
    replace = patch('[JSONPatch{op: "replace", path: "/spec/priorityClassName", value: "high"}]')
    assert mutate([mutating(replace)], pod()).object["spec"]["priorityClassName"] == "high"


def test_replace_at_a_missing_index_is_an_error() -> None:
    """A list has no room for an element that is not there."""
    replace = patch('[JSONPatch{op: "replace", path: "/spec/containers/3/image", value: "x"}]')
    mutated = mutate([mutating(replace)], pod())
    assert mutated.object == pod()
    assert "index 3 is past the end of a list of 1" in str(mutated.errors[0])


def test_add_at_an_existing_map_replaces_it() -> None:
    """Which is how labels are lost; merging is ApplyConfiguration's way."""
    obj = pod()
    obj["metadata"]["labels"] = {"old": "1"}
    add = patch('[JSONPatch{op: "add", path: "/metadata/labels", value: {"new": "2"}}]')
    assert mutate([mutating(add)], obj).object["metadata"]["labels"] == {"new": "2"}


def test_keys_with_slashes_are_escaped_for_a_path() -> None:
    """`jsonpatch.escapeKey` lets a patch name an annotation."""
    obj = pod()
    obj["metadata"]["annotations"] = {}
    add = patch(
        '[JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("example.com/a~b"),'
        ' value: "x"}]'
    )
    assert mutate([mutating(add)], obj).object["metadata"]["annotations"] == {"example.com/a~b": "x"}


def test_an_unknown_field_in_a_patch_is_an_error() -> None:
    """The API server would drop it or refuse the object; the policy's author hears of it."""
    unknown = patch('[JSONPatch{op: "add", path: "/spec/" + object.metadata.name, value: "x"}]')
    mutated = mutate([mutating(unknown)], pod())
    assert mutated.object == pod()
    assert mutated.errors[0].message == "spec.one is no field of this kind"


def test_a_value_of_the_wrong_type_in_a_patch_is_an_error() -> None:
    """Text where the kind has a number."""
    wrong = patch('[JSONPatch{op: "add", path: "/spec/activeDeadlineSeconds", value: "60"}]')
    assert (
        mutate([mutating(wrong)], pod()).errors[0].message == "spec.activeDeadlineSeconds must be an integer"
    )


def test_a_field_that_came_with_the_object_is_not_held_against_the_policy() -> None:
    """What the user wrote is for the API server to judge."""
    mutated = mutate([mutating(SET_SCHEDULER)], pod(shedulerName="typo"))
    assert mutated.errors == ()


def test_a_policy_may_not_write_metadata_that_is_no_object() -> None:
    """Also of a kind without a schema: all that follows reads it."""
    turn = patch('[JSONPatch{op: "replace", path: "/metadata", value: [1]}]')
    some = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "a"}, "spec": {}}
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    assert mutate([mutating(turn, rule=rule)], some).errors[0].message == "metadata must be an object"


def test_a_policy_may_not_turn_an_object_into_another_kind() -> None:
    """The kind decides what comes after."""
    turn = patch('[JSONPatch{op: "replace", path: "/kind", value: "Job"}]')
    assert mutate([mutating(turn)], pod()).errors[0].message == "kind may not change"


def test_mutations_of_one_policy_see_each_other() -> None:
    """The second works on what the first left, and so do the variables."""
    policy = mutating(
        SET_SCHEDULER,
        patch(
            'variables.kai ? [JSONPatch{op: "add", path: "/metadata/labels", value: {"seen": "yes"}}] : []'
        ),
        variables=[{"name": "kai", "expression": 'object.spec.schedulerName == "kai-scheduler"'}],
    )
    assert mutate([policy], pod()).object["metadata"]["labels"] == {"seen": "yes"}


def test_policies_run_by_name_and_see_each_other() -> None:
    """The order does not depend on that of the files."""
    second = mutating(
        patch('[JSONPatch{op: "add", path: "/metadata/labels", value: {"by": object.spec.schedulerName}}]'),
        name="b",
    )
    first = mutating(SET_SCHEDULER, name="a")
    mutated = mutate([second, first], pod())
    assert mutated.object["metadata"]["labels"] == {"by": "kai-scheduler"}
    assert [effect.policy for effect in mutated.effects] == ["a", "b"]


def test_a_failed_mutation_does_not_stop_the_later_ones() -> None:
    """Under Ignore the successes stay and the failure is a warning."""
    fails = patch('[JSONPatch{op: "remove", path: "/spec/nodeSelector"}]')
    mutated = mutate([mutating(fails, SET_SCHEDULER, failurePolicy="Ignore")], pod())
    assert mutated.errors == ()
    assert "nothing to remove" in str(mutated.warnings[0])
    assert mutated.object["spec"]["schedulerName"] == "kai-scheduler"


def test_an_evaluation_error_under_fail_names_policy_and_expression() -> None:
    """And neither the object nor its values."""
    fails = patch('[JSONPatch{op: "add", path: "/spec/priority", value: object.spec.priority + 1}]')
    (error,) = mutate([mutating(fails)], pod()).errors
    assert error.fatal
    assert str(error) == "policy 'mutate', spec.mutations[0].jsonPatch.expression: no such key: priority"


COUNT = (
    '[JSONPatch{op: "add", path: "/metadata/labels",'
    ' value: {"containers": string(object.spec.containers.size())}}]'
)
ADD_CONTAINER = patch(
    'object.spec.containers.exists(c, c.name == "late") ? [] :'
    ' [JSONPatch{op: "add", path: "/spec/containers/-", value: {"name": "late", "image": "x:1"}}]'
)


@pytest.mark.parametrize(("reinvocation", "counted"), [("IfNeeded", "2"), ("Never", "1")])
def test_a_policy_is_invoked_again_only_if_it_asks(reinvocation: str, counted: str) -> None:
    """A later policy added a container; the earlier one sees it with IfNeeded."""
    count = mutating(patch(COUNT), name="a", reinvocationPolicy=reinvocation)
    mutated = mutate([count, mutating(ADD_CONTAINER, name="b")], pod())
    assert mutated.object["metadata"]["labels"] == {"containers": counted}


def test_there_is_one_reinvocation_round_and_no_more() -> None:
    """Two policies that undo each other come to an end."""
    grow = patch('[JSONPatch{op: "add", path: "/spec/containers/-", value: {"name": "c" +'
                 ' string(object.spec.containers.size()), "image": "x:1"}}]')  # fmt: skip
    ask = {"reinvocationPolicy": "IfNeeded"}
    mutated = mutate([mutating(grow, name="a", **ask), mutating(grow, name="b", **ask)], pod())
    assert len(mutated.object["spec"]["containers"]) == 1 + 2 + 2


def test_a_policy_that_nobody_followed_is_not_invoked_again() -> None:
    """Its own change is no reason."""
    mutated = mutate([mutating(ADD_CONTAINER, reinvocationPolicy="IfNeeded")], pod())
    assert len(mutated.effects) == 1


HEAVY = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, true)))"


def test_each_mutation_has_the_whole_budget() -> None:
    """As upstream, whatever the mutations before it and other policies cost; a dear one is named."""
    cheap = patch(f"{HEAVY} ? [] : []")
    dear = patch(f"{HEAVY} && {HEAVY} ? [] : []")
    cost = mutate([mutating(cheap)], pod()).cost
    inputs = Inputs(budget=int(cost * 1.5))
    mutated = mutate([mutating(cheap, cheap, name=name) for name in ("a", "b", "c")], pod(), inputs)
    assert (mutated.errors, mutated.cost) == ((), 6 * cost)
    (error,) = mutate([mutating(cheap, dear)], pod(), inputs).errors
    assert error.label == "spec.mutations[1].jsonPatch.expression"
    assert "cost limit" in error.message


def test_match_conditions_have_a_quarter_of_the_budget() -> None:
    """A condition may not spend what mutations may."""
    cost = mutate([mutating(patch(f"{HEAVY} ? [] : []"))], pod()).cost
    inputs = Inputs(budget=cost * 2)
    conditions = [{"name": "dear", "expression": HEAVY}]
    (error,) = mutate([mutating(SET_SCHEDULER, matchConditions=conditions)], pod(), inputs).errors
    assert error.label == "spec.matchConditions[0].expression"
    assert "cost limit" in error.message


def test_a_false_condition_wins_over_an_error_in_another() -> None:
    """As upstream: the policy is skipped."""
    conditions = [
        {"name": "breaks", "expression": "object.spec.priority > 1"},
        {"name": "no", "expression": "false"},
    ]
    mutated = mutate([mutating(SET_SCHEDULER, matchConditions=conditions)], pod())
    assert (mutated.errors, mutated.effects) == ((), ())


def test_an_error_in_a_condition_follows_the_failure_policy() -> None:
    """Without a false one beside it."""
    conditions = [{"name": "breaks", "expression": "object.spec.priority > 1"}]
    refused = mutate([mutating(SET_SCHEDULER, matchConditions=conditions)], pod())
    ignored = mutate([mutating(SET_SCHEDULER, matchConditions=conditions, failurePolicy="Ignore")], pod())
    assert (len(refused.errors), len(ignored.warnings)) == (1, 1)
    assert refused.effects == ignored.effects == ()


def test_variables_are_evaluated_only_if_something_reads_them() -> None:
    """One that would fail does no harm unread."""
    policy = mutating(SET_SCHEDULER, variables=[{"name": "bad", "expression": "object.spec.priority + 1"}])
    assert mutate([policy], pod()).errors == ()


def test_a_failing_variable_is_named_as_the_place_of_the_error() -> None:
    """The mutation that reads it is not what is wrong."""
    policy = mutating(
        patch('variables.bad > 1 ? [] : [JSONPatch{op: "remove", path: "/spec"}]'),
        variables=[{"name": "bad", "expression": "object.spec.priority + 1"}],
    )
    assert mutate([policy], pod()).errors[0].label == "spec.variables[0].expression"


def test_what_a_policy_changed_is_all_that_differs() -> None:
    """Defaults that were set for evaluation are not in the output."""
    mutated = mutate([mutating(SET_SCHEDULER)], pod())
    assert mutated.object == pod(schedulerName="kai-scheduler")


def test_a_policy_that_writes_a_default_changes_nothing() -> None:
    """`Always` is what the pod has anyway."""
    always = patch('[JSONPatch{op: "add", path: "/spec/restartPolicy", value: "Always"}]')
    assert mutate([mutating(always)], pod()).effects == ()


def test_each_binding_gives_its_own_parameters() -> None:
    """One run for each parameter object, in order; the effects say which binding it was."""
    policy = mutating(
        apply("Object{metadata: Object.metadata{labels: params.data}}"),
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    labels = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"set": "yes"}},
            "data": {name: "1"},
        }
        for name in ("a", "b")
    ]
    by_name = binding(policy, "by-name", paramRef={"name": "a", "parameterNotFoundAction": "Deny"})
    mutated = mutate([policy, by_name, *labels], pod())
    assert mutated.object["metadata"]["labels"] == {"a": "1"}
    by_label = binding(
        policy,
        "by-label",
        paramRef={"selector": {"matchLabels": {"set": "yes"}}, "parameterNotFoundAction": "Deny"},
    )
    mutated = mutate([policy, by_label, *labels], pod())
    assert mutated.object["metadata"]["labels"] == {"a": "1", "b": "1"}
    assert [effect.binding for effect in mutated.effects] == ["by-label"]


@pytest.mark.parametrize(("action", "refused"), [("Deny", True), ("Allow", False)])
def test_missing_parameters_deny_or_allow(action: str, refused: bool) -> None:
    """Allow leaves the policy out, as upstream."""
    policy = mutating(SET_SCHEDULER, paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    bound = binding(policy, paramRef={"name": "gone", "parameterNotFoundAction": action})
    mutated = mutate([policy, bound], pod())
    assert bool(mutated.errors) is refused
    assert mutated.effects == ()


def test_policies_that_need_a_cluster_are_left_out_without_one() -> None:
    """They are named, and policies that do not read the plan run before those that do."""
    reads = mutating(
        patch(
            'variables.where == "" ? [] :'
            ' [JSONPatch{op: "add", path: "/spec/nodeName", value: variables.where}]'
        ),
        name="a-reads-plan",
        api=OURS,
        variables=[{"name": "where", "expression": "plan.nodes[0]"}],
    )
    policies = loaded(reads, mutating(SET_SCHEDULER, name="z"))
    assert [policy.name for policy in policies.mutating] == ["z", "a-reads-plan"]
    assert policies.uses_plan
    offline = mutate(policies, pod(), Inputs(variable_names=frozenset({"gang"})))
    assert [(row.policy, row.lacks) for row in offline.skipped] == [("a-reads-plan", ("plan",))]
    inputs = Inputs(frozenset({"plan"}), lambda obj, pod_set: {"plan": {"nodes": ["n1"]}})
    assert mutate(policies, pod(), inputs).object["spec"]["nodeName"] == "n1"


def test_an_upstream_policy_does_not_see_our_variables() -> None:
    """`gang` is a bayplan.dev word."""
    with pytest.raises(ValueError, match="undeclared name 'gang'"):
        loaded(mutating(patch("gang.size > 1 ? [] : []")))


def test_a_policy_for_another_kind_leaves_the_object_alone() -> None:
    """Nothing is evaluated."""
    mutated = mutate([mutating(SET_SCHEDULER)], deployment())
    assert (mutated.effects, mutated.cost) == ((), 0)


def test_a_sidecar_is_added_by_json_patch_with_its_arguments() -> None:
    """The documentation's other way: the list is made where it is missing, else appended to."""
    sidecar = (
        'Object.spec.initContainers{name: "mesh-proxy", image: "mesh/proxy:v1", args: ["proxy", "sidecar"]}'
    )
    policy = mutating(
        patch(
            "has(object.spec.initContainers) ? [] :"
            ' [JSONPatch{op: "add", path: "/spec/initContainers", value: []}]'
        ),
        patch(f'[JSONPatch{{op: "add", path: "/spec/initContainers/-", value: {sidecar}}}]'),
    )
    added = {"name": "mesh-proxy", "image": "mesh/proxy:v1", "args": ["proxy", "sidecar"]}
    first = {"name": "first", "image": "x:1"}
    assert mutate([policy], pod()).object["spec"]["initContainers"] == [added]
    assert mutate([policy], pod(initContainers=[first])).object["spec"]["initContainers"] == [first, added]
