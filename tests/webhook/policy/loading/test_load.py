"""Policy files: every field read, every slip told with its place, and nothing ever a traceback."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.webhook.policy.helpers import (
    OURS,
    UPSTREAM,
    apply,
    binding,
    check,
    mutating,
    patch,
    pod,
    validating,
)
from webhook.policy import PolicyError, load
from webhook.policy.loading.document import MAX_BYTES

Json = dict[str, Any]


def problems(text: str, file: str = "p.yaml") -> list[str]:
    """What is wrong with a file, without its source lines."""
    try:
        load([(file, text)])
    except PolicyError as error:
        return [str(problem).partition("\n")[0] for problem in error.problems]
    return []


def problems_of(*documents: Json) -> list[str]:
    """The same, from documents."""
    return problems(yaml.safe_dump_all(documents, sort_keys=False))


def changed(document: Json, change: Callable[[Json], Any]) -> Json:
    """A copy with one change."""
    document = copy.deepcopy(document)
    change(document)
    return document


FULL_MUTATING = mutating(
    patch("[]"),
    apply("Object{}"),
    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    matchConditions=[{"name": "c", "expression": "true"}],
    variables=[{"name": "v", "expression": "1"}],
    failurePolicy="Ignore",
    reinvocationPolicy="IfNeeded",
)
FULL_VALIDATING = validating(
    check("variables.v == 1", message="m", reason="Forbidden", messageExpression="'x'"),
    auditAnnotations=[{"key": "k", "valueExpression": "'v'"}],
    variables=[{"name": "v", "expression": "1"}],
    matchConstraints={
        "matchPolicy": "Exact",
        "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
        "objectSelector": {"matchLabels": {"a": "b"}},
        "resourceRules": [
            {
                "operations": ["CREATE", "DELETE", "CONNECT"],
                "apiGroups": ["*"],
                "apiVersions": ["*"],
                "resources": ["*/*"],
                "resourceNames": ["n"],
                "scope": "Namespaced",
            }
        ],
        "excludeResourceRules": [
            {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        ],
    },
)


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_every_field_of_the_schema_is_read(version: str) -> None:
    """In each version of upstream's group."""
    documents = [FULL_MUTATING, FULL_VALIDATING, binding(FULL_MUTATING), binding(FULL_VALIDATING)]
    api = f"admissionregistration.k8s.io/{version}"
    assert problems_of(*[{**document, "apiVersion": api} for document in documents]) == []


def test_what_is_read_is_what_was_written() -> None:
    """The model holds every field."""
    text = yaml.safe_dump_all([FULL_MUTATING, FULL_VALIDATING])
    policies = load([("p.yaml", text)], revision="r1")
    (first,), (second,) = policies.mutating, policies.validating
    assert (first.ignore_failure, first.reinvoke, policies.revision) == (True, True, "r1")
    assert [row.patch_type for row in first.mutations] == ["JSONPatch", "ApplyConfiguration"]
    assert second.match.rules[0].scope == "Namespaced"
    assert not second.match.equivalent
    assert second.validations[0].reason == "Forbidden"
    assert second.audit_annotations[0].name == "k"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d["spec"].update(mutation=[]), "spec.mutation: unknown field"),
        (lambda d: d["spec"].pop("mutations"), "spec: mutations is required"),
        (lambda d: d["spec"].pop("matchConstraints"), "spec: matchConstraints is required"),
        (lambda d: d["spec"]["matchConstraints"].pop("resourceRules"), "resourceRules is required"),
        (lambda d: d["spec"].update(failurePolicy="Maybe"), "failurePolicy: must be one of Fail, Ignore"),
        (lambda d: d["spec"].update(reinvocationPolicy="Always"), "must be one of Never, IfNeeded"),
        (lambda d: d["spec"].update(variables={"a": "1"}), "spec.variables: must be a list"),
        (lambda d: d["spec"]["variables"].append("x"), "spec.variables[1]: must be a map"),
        (lambda d: d["spec"]["variables"].append(d["spec"]["variables"][0]), "v occurs twice"),
        (lambda d: d["spec"]["variables"][0].update(name="a-b"), "must be an identifier"),
        (lambda d: d["spec"]["matchConditions"][0].pop("expression"), "expression is required"),
        (lambda d: d["spec"]["matchConditions"][0].update(expression="1"), "must give bool, gives int"),
        (lambda d: d["spec"]["matchConditions"][0].update(expression="variables.v == 1"), "undeclared name"),
        (
            lambda d: d["spec"].update(matchConditions=d["spec"]["matchConditions"] * 65),
            "at most 64 are allowed",
        ),
        (lambda d: d["spec"]["mutations"][0].update(patchType="Merge"), "must be one of JSONPatch"),
        (
            lambda d: d["spec"]["mutations"][0].update(applyConfiguration={"expression": "Object{}"}),
            "stands beside patchType JSONPatch",
        ),
        (lambda d: d["spec"]["mutations"][0].pop("jsonPatch"), "jsonPatch is required"),
        (
            lambda d: d["spec"]["mutations"][0]["jsonPatch"].update(expression="'x'"),
            "must give list, gives string",
        ),
        (lambda d: d["spec"]["mutations"][0]["jsonPatch"].update(expression=3), "must be text"),
        (lambda d: d["spec"].update(paramKind={"kind": "ConfigMap"}), "apiVersion is required"),
        (lambda d: d["metadata"].pop("name"), "name is required"),
        (lambda d: d.pop("metadata"), "metadata is required"),
        (lambda d: d.pop("spec"), "spec is required"),
        (lambda d: d.update(spec=[]), "spec: must be a map"),
        (lambda d: d.update(apiVersion="admissionregistration.k8s.io/v9"), "not a version of Mutating"),
        (lambda d: d.update(apiVersion=1), "is no Kubernetes object"),
        (lambda d: d["metadata"].update(labels={"a": 1}), "metadata.labels.a: must be text"),
        (lambda d: d["spec"]["matchConstraints"].update(objectSelector={"matchLabel": {}}), "unknown field"),
        (
            lambda d: d["spec"]["matchConstraints"].update(
                objectSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}
            ),
            "In needs values",
        ),
        (
            lambda d: d["spec"]["matchConstraints"]["resourceRules"][0].update(operations=["create"]),
            "must be one of CREATE",
        ),
        (
            lambda d: d["spec"]["matchConstraints"]["resourceRules"][0].pop("apiGroups"),
            "apiGroups is required",
        ),
    ],
)
def test_each_slip_is_told_with_its_field(change: Callable[[Json], Any], expected: str) -> None:
    """Starting from a policy with every field, with one thing wrong."""
    errors = problems_of(changed(FULL_MUTATING, change))
    assert any(expected in problem for problem in errors), errors
    assert all(problem.startswith("p.yaml:") for problem in errors)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d["spec"].pop("policyName"), "policyName is required"),
        (lambda d: d["spec"].update(policyName="other"), "no ValidatingAdmissionPolicy of this name"),
        (lambda d: d["spec"].update(validationActions=["Deny", "Warn"]), "Deny and Warn do not go together"),
        (lambda d: d["spec"].update(validationActions=["Audit", "Audit"]), "occurs twice"),
        (lambda d: d["spec"].pop("validationActions"), "validationActions is required"),
        (lambda d: d["spec"].update(paramRef={"name": "a"}), "the policy has no paramKind"),
        (
            lambda d: d["spec"].update(paramRef={"name": "a", "selector": {}}),
            "name or selector, and not both",
        ),
        (lambda d: d["spec"].update(paramRef={}), "name or selector, and not both"),
        (lambda d: d["spec"].update(matchResource={}), "unknown field"),
    ],
)
def test_each_slip_in_a_binding_is_told(change: Callable[[Json], Any], expected: str) -> None:
    """Starting from a binding that loads."""
    bound = binding(FULL_VALIDATING)
    assert problems_of(FULL_VALIDATING, bound) == []
    errors = problems_of(FULL_VALIDATING, changed(bound, change))
    assert any(expected in problem for problem in errors), errors


def test_the_place_of_an_error_in_an_expression_is_that_in_the_file() -> None:
    """Line and column count in the YAML file, also within a block scalar; a caret stands below."""
    text = """\
apiVersion: bayplan.dev/v1alpha1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [services]}]
  validations:
  - expression: object.spec.a == nope
  - expression: >-
      object.spec.a == 1 &&
      nope == 2
  - expression: "nope"
"""
    with pytest.raises(PolicyError) as caught:
        load([("p.yaml", text)])
    places = [(problem.line, problem.column) for problem in caught.value.problems]
    assert places[0] == (8, 34)
    assert places[2] == (12, 18)
    assert caught.value.problems[0].source.endswith("object.spec.a == nope\n" + " " * 19 + "^")
    assert str(caught.value).startswith(
        "p.yaml:8:34: ValidatingAdmissionPolicy/p: spec.validations[0].expression: undeclared name 'nope'"
    )


UNFIT = [
    (
        validating(check("object.spec.container.size() > 0"), api=UPSTREAM),
        "no field 'container'; did you mean",
    ),
    (validating(check("object.spec.restartPolicy > 3"), api=UPSTREAM), "no overload of > for (string, int)"),
    (validating(check("has(object.spec.nope)"), api=UPSTREAM), "no field 'nope'"),
    (
        mutating(apply("Object{spec: Object.spec{nope: 'x'}}"), api=UPSTREAM),
        "Object.spec has no field 'nope'",
    ),
    (
        mutating(apply("Object{spec: Object.spec{hostname: 3}}"), api=UPSTREAM),
        "Object.spec.hostname must be string",
    ),
    (
        mutating(patch("[JSONPatch{op: 'add', path: '/spec/nope', value: 'x'}]"), api=UPSTREAM),
        "no field 'nope'",
    ),
]
"""Policies whose expressions do not fit the schema of the one kind that their rules name."""


@pytest.mark.parametrize(("policy", "message"), UNFIT)
def test_what_a_known_kind_lacks_is_an_error_of_our_policies_at_load(policy: Json, message: str) -> None:
    """`object` has the schema of the one kind that the rules name."""
    errors = problems_of({**policy, "apiVersion": OURS})
    assert len(errors) == 1
    assert message in errors[0]


@pytest.mark.parametrize(("policy", "message"), UNFIT)
def test_what_a_known_kind_lacks_is_a_warning_of_kubernetes_own_policies(policy: Json, message: str) -> None:
    """As upstream's type checker has it: the policy is loaded, and the warning has its place."""
    policies = load([("p.yaml", yaml.safe_dump(policy, sort_keys=False))])
    assert len(policies.policies) == 1
    (warning,) = policies.warnings
    assert message in warning
    assert warning.startswith("p.yaml:")
    assert "AdmissionPolicy/" in warning
    assert warning.endswith("^"), "with the expression and a caret"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("object.spec.nope == other", "undeclared name 'other'"),
        ("object.spec.nope == nofunction(1)", "nofunction"),
        ("variables.nope == 1", "no field 'nope'"),
        ("object.spec.restartPolicy", "must give bool, gives string"),
    ],
)
def test_what_the_api_server_refuses_is_an_error_of_every_policy(expression: str, message: str) -> None:
    """Names and functions that there are not, and a verdict that is none."""
    (problem,) = problems_of(validating(check(expression)))
    assert message in problem


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("gang.qeue == 'a'", "no field 'qeue'; did you mean 'queue'?"),
        ("gang.podSets.all(p, p.cuont > 0)", "no field 'cuont'; did you mean 'count'?"),
        ("has(gang.constraint.requird)", "no field 'requird'; did you mean 'required'?"),
        ("plan.gangs.all(g, g.desicion != '')", "no field 'desicion'; did you mean 'decision'?"),
        ("cluster.domans.size() > 0", "no field 'domans'; did you mean 'domains'?"),
    ],
)
def test_a_misspelt_field_of_our_variables_is_told_with_the_nearest(expression: str, message: str) -> None:
    """Where a policy names it, and not in each request; the user's own labels are any."""
    (problem,) = problems_of(validating(check(expression), api=OURS))
    assert message in problem
    assert problems_of(validating(check("gang.labels.anything == ''"), api=OURS)) == []


def test_a_variable_that_is_not_declared_before_is_an_error_at_load() -> None:
    """Order counts."""
    policy = validating(
        check("true"),
        variables=[{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}],
    )
    errors = problems_of(policy)
    assert len(errors) == 1
    assert "spec.variables[0].expression" in errors[0]
    assert "'b'" in errors[0]


def test_params_without_a_param_kind_are_undeclared() -> None:
    """As upstream."""
    assert "undeclared name 'params'" in problems_of(validating(check("params.x == 1")))[0]


def test_all_problems_of_all_files_are_told_at_once() -> None:
    """And nothing is loaded."""
    bad = yaml.safe_dump(validating(check("nope")))
    with pytest.raises(PolicyError) as caught:
        load(
            [
                ("a.yaml", bad),
                ("b.yaml", "{"),
                ("c.yaml", bad.replace("nope", "1 +").replace("name: validate", "name: c")),
            ]
        )
    assert [problem.file for problem in caught.value.problems] == ["a.yaml", "b.yaml", "c.yaml"]


def test_the_same_policy_twice_is_an_error_that_names_the_other_file() -> None:
    """In whichever group and file it stands."""
    first, second = yaml.safe_dump(FULL_VALIDATING), yaml.safe_dump({**FULL_VALIDATING, "apiVersion": OURS})
    with pytest.raises(PolicyError, match=r"b\.yaml:1:1: .*occurs twice; the first is in a\.yaml"):
        load([("a.yaml", first), ("b.yaml", second)])


def test_what_lies_beside_policies_is_parameters_and_kustomize_is_passed_over() -> None:
    """Of the kind that a policy takes; other manifests, and cases, are left to `bayplan test`."""
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [FULL_MUTATING, settings, pod(), pod()]}
    kustomization = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    policies = load([("l.yaml", yaml.safe_dump_all([listed, kustomization])), ("x/tests.yaml", "cases: []")])
    assert [policy.name for policy in policies.policies] == ["mutate"]
    assert [item["kind"] for item in policies.params] == ["ConfigMap"]


def test_what_a_policy_reads_is_known_through_its_variables() -> None:
    """A policy that reads the plan two variables away runs with those that read it."""
    policy = mutating(
        patch("variables.b > 0 ? [] : []"),
        api=OURS,
        variables=[
            {"name": "a", "expression": "plan.nodes.size()"},
            {"name": "b", "expression": "variables.a + 1"},
            {"name": "c", "expression": "gang.size"},
        ],
    )
    (loaded,) = load([("p.yaml", yaml.safe_dump(policy))]).mutating
    assert {"plan", "gang", "variables"} <= loaded.uses


def test_a_variable_that_is_picked_at_run_time_counts_as_any_of_them() -> None:
    """So the policy still runs with those that read the plan."""
    policy = mutating(
        patch("variables.b > 0 && variables['a'] > 0 ? [] : []"),
        api=OURS,
        variables=[{"name": "a", "expression": "plan.nodes.size()"}, {"name": "b", "expression": "1"}],
    )
    (loaded,) = load([("p.yaml", yaml.safe_dump(policy))]).mutating
    assert "plan" in loaded.uses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [", "p.yaml:2:1: not YAML"),
        ("a: 1\na: 2\n", "p.yaml:2:1: not YAML: key 'a' occurs twice"),
        ("? [1]\n: 2\n", "a key must be text"),
        ("!!python/object/apply:os.system [ls]", "p.yaml:1:1"),
        ("a: !foo b", "the tag '!foo' is not supported"),
        ("a: 0x", ""),
        ("just text", "is no Kubernetes object"),
        ("[" * 1500, "nested deeper than"),
        ("a:\n" + "".join(" " * i + "- \n" for i in range(1, 300)), ""),
        ("\x00", "not YAML"),
        ("{" * 1500 + "}" * 1500, "nested deeper than"),
        ("a: &a [x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(3)), "is no Kubernetes object"),
        (
            "l0: &l0 [x]\n"
            + "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 12)),
            "aliases unfold to more than",
        ),
    ],
)
def test_bad_yaml_is_told_in_a_line(text: str, expected: str) -> None:
    """Broken, hostile or merely odd."""
    errors = problems(text)
    assert errors
    assert expected in errors[0]
    assert all("\n" not in problem and len(problem) < 300 for problem in errors)


def test_the_size_of_a_file_is_counted_in_bytes() -> None:
    """A letter with an accent has two."""
    assert problems(f"# {'é' * (MAX_BYTES // 2)}") == [f"p.yaml: larger than the limit of {MAX_BYTES} bytes"]


def test_an_empty_file_is_an_error() -> None:
    """So is one of comments: a file that was cut off must not take its policy away unnoticed."""
    with pytest.raises(PolicyError) as caught:
        load([("p.yaml", ""), ("q.yaml", "# nothing\n---\n")])
    assert [problem.file for problem in caught.value.problems] == ["p.yaml", "q.yaml"]


PLAIN = (
    "spec: kind: apiVersion: metadata: [ ] { } : , &a *a ' \" | >- !!int !!float --- <<: 1e999 0b12 .inf = ~"
)
WORDS = f"{UPSTREAM} {OURS} MutatingAdmissionPolicy ValidatingAdmissionPolicy matchConstraints validations"
PIECES = st.sampled_from(
    [*PLAIN.split(), *WORDS.split(), *" \n\t\x85\ufeff", "\n  ", "\n- ", ": ", "2001-99-99"]
)


@settings(max_examples=150)
@given(st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join)))
@example("a: 1e999")
@example("<<: 1")
@example("a: 2001-99-99")
@example("a: 1:99:99")
@example("- &a [*a]")
def test_any_text_loads_or_is_an_error_in_words(text: str) -> None:
    """Random text and random pieces of policies: a PolicyError, and no other exception."""
    problems(text)


@settings(max_examples=100)
@given(st.data())
def test_any_value_in_the_place_of_any_field_is_an_error_in_words(data: st.DataObject) -> None:
    """A policy in which one field holds something else."""
    document = copy.deepcopy(
        data.draw(st.sampled_from([FULL_MUTATING, FULL_VALIDATING, binding(FULL_VALIDATING)]))
    )
    node: Any = document
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(node[key], (dict, list)) and node[key] and data.draw(st.booleans()):
            node = node[key]
            continue
        node[key] = data.draw(
            st.sampled_from(
                [None, 0, -1.5, True, "", "x", [], {}, [None], [[]], {"a": None}, "1 +", [{"a": 1}]]
            )
        )
        break
    problems_of(document)
