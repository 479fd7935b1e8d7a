"""`tests.yaml`, `bayplan test` and `bayplan policies`, as a person uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.webhook.policy.helpers import OURS, binding, check, mutating, patch, pod, validating
from webhook.cli.main import main
from webhook.policy import PolicyError
from webhook.policy.testing.cases import CaseOutcome, Expectation, differences
from webhook.policy.testing.runner import Suite

SET = mutating(
    patch('[JSONPatch{op: "add", path: "/spec/schedulerName", value: params.data.name}]'),
    name="scheduler",
    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
)
PARAMS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"name": "kai"}}
LIMIT = validating(check("object.spec.containers.size() <= 1", message="one container"), name="limit")
Json = dict[str, Any]


def folder(tmp_path: Path, *cases: Json, **top: Any) -> Path:
    """Two policies with parameters, and cases."""
    bound = binding(SET, paramRef={"name": "settings", "parameterNotFoundAction": "Deny"})
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump_all([SET, bound, PARAMS, LIMIT]))
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod()))
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"cases": list(cases), **top}, sort_keys=False))
    return tmp_path


def case(name: str = "a case", obj: Any = "pod.yaml", expect: Json | None = None, **fields: Any) -> Json:
    """A case."""
    return {"name": name, "object": obj, "expect": expect or {"allowed": True}, **fields}


def test_cases_that_hold_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every kind of expectation, on an object from a file and on one that stands there."""
    two = pod(containers=[{"name": name, "image": "x:1"} for name in ("a", "b")])
    other = {**PARAMS, "data": {"name": "volcano"}}
    status = main(
        [
            "test",
            str(
                folder(
                    tmp_path,
                    case(expect={"object": {"spec": {"schedulerName": "kai"}}, "absent": ["/spec/nodeName"]}),
                    case("b", params=[other], expect={"object": {"spec": {"schedulerName": "volcano"}}}),
                    case("c", two, expect={"allowed": False, "messageContains": "one container"}),
                    case(
                        "d", expect={"patch": [{"op": "add", "path": "/spec/schedulerName", "value": "kai"}]}
                    ),
                    case("e", pod(schedulerName="kai"), expect={"unchanged": True, "warnings": []}),
                )
            ),
        ]
    )
    assert (status, capsys.readouterr().out.splitlines()[-1]) == (0, "5 cases, 0 failed")


@pytest.mark.parametrize(
    ("amount", "holds"), [(2, True), ("2", True), ("2000m", True), (1, False), ("two", False)]
)
def test_an_expected_amount_of_a_resource_is_compared_by_its_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], amount: object, holds: bool
) -> None:
    """The policy copies a number of the file, which it sees as the text that the API server writes."""
    limited = {"name": "a", "image": "x:1", "resources": {"limits": {"example.com/a": 2}}}
    copied = mutating(
        patch(
            '[JSONPatch{op: "add", path: "/spec/containers/0/resources/limits/example.com~1b", '
            'value: object.spec.containers[0].resources.limits["example.com/a"]}]'
        ),
        name="copied",
    )
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(copied))
    expected = {"spec": {"containers": [{"resources": {"limits": {"example.com/b": amount}}}]}}
    cases = [case(obj=pod(containers=[limited]), expect={"object": expected})]
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"cases": cases}))
    assert main(["test", str(tmp_path)]) == int(not holds), capsys.readouterr().out


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ({"allowed": False}, "expected denied, got allowed"),
        ({"unchanged": True}, "expected no change, got the patch"),
        ({"object": {"spec": {"schedulerName": "volcano"}}}, "-  schedulerName: volcano"),
        ({"patch": []}, "+- op: add"),
        ({"warnings": ["queued"]}, "no warning says 'queued'"),
        ({"absent": ["/spec/schedulerName"]}, "/spec/schedulerName is there"),
        ({"messageContains": "no"}, "the message lacks 'no'"),
    ],
)
def test_a_case_that_does_not_hold_shows_what_differed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], expect: Json, message: str
) -> None:
    """With the file and line of the case; the status is 1."""
    assert main(["test", str(folder(tmp_path, case(expect=expect)))]) == 1
    out = capsys.readouterr().out
    assert message in out
    assert "tests.yaml:2: a case" in out


def test_a_denial_that_nobody_expected_fails_a_case() -> None:
    """Also where the case speaks only of the object."""
    outcome = CaseOutcome(False, "because", (), {}, ())
    assert differences(Expectation(object={}), outcome) == ["denied, which was not expected: because"]


def test_coverage_lists_expressions_that_no_case_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A passing validation does not reach its message."""
    policy = validating(check("true", messageExpression="'never'"), name="p")
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"cases": [case(obj=pod())]}))
    assert main(["test", str(tmp_path), "--coverage"]) == 0
    out = capsys.readouterr().out
    assert "1 of 2 expressions reached" in out
    assert "not reached: p: spec.validations[0].messageExpression" in out


def test_a_policy_without_a_case_is_reported_and_strict_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A case that names the other policy is no case of this one."""
    path = str(folder(tmp_path, case(policy="scheduler")))
    assert main(["test", path]) == 0
    assert "ValidatingAdmissionPolicy/limit has no case" in capsys.readouterr().err
    assert main(["test", path, "--strict"]) == 1


def test_junit_has_a_testcase_for_each_case(tmp_path: Path) -> None:
    """And a failure with the difference."""
    report = tmp_path / "report.xml"
    path = folder(tmp_path, case("fine"), case("not", expect={"allowed": False}))
    assert main(["test", str(path), "--junit", str(report)]) == 1
    root = ElementTree.fromstring(report.read_bytes())
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    failed = [row.get("name") for row in root.iter("testcase") if row.find("failure") is not None]
    assert failed == ["not"]


def test_a_case_with_a_cluster_sees_a_plan(tmp_path: Path) -> None:
    """And without one the policies that read the plan are left out."""
    policy = mutating(
        patch(
            "plan == null ? [] :"
            ' [JSONPatch{op: "add", path: "/metadata/labels", value: {"decision": plan.decision}}]'
        ),
        name="p",
        api=OURS,
    )
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}},
    }
    container = {"name": "main", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    obj = pod(containers=[container])
    cases = [
        case(
            "with", obj, cluster=[node], expect={"object": {"metadata": {"labels": {"decision": "admitted"}}}}
        ),
        case("without", obj, expect={"absent": ["/metadata/labels"]}),
    ]
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"cases": cases}))
    assert main(["test", str(tmp_path)]) == 0


def test_a_case_file_may_name_the_policies_that_it_is_for(tmp_path: Path) -> None:
    """From its own folder; else those beside and below it run."""
    path = folder(tmp_path / "a", case(expect={"unchanged": True}), policies=["../b"])
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "policy.yaml").write_text(yaml.safe_dump(LIMIT))
    assert main(["test", str(path)]) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"object": "gone.yaml"}, "cannot read it"),
        ({"object": 3}, "must be a manifest, or the path of one"),
        ({"expect": {}}, "says nothing"),
        ({"expect": {"allow": True}}, "unknown field"),
        ({"operation": "PATCH"}, "must be one of CREATE"),
        ({"objects": []}, "unknown field"),
        ({"object": "pod.yaml#other"}, "holds 0 objects"),
    ],
)
def test_a_bad_case_is_told_with_its_line(tmp_path: Path, change: Json, message: str) -> None:
    """And nothing runs."""
    with pytest.raises(PolicyError, match=r"tests\.yaml:\d+:\d+: ") as caught:
        Suite.load([folder(tmp_path, {**case(), **change})])
    assert message in str(caught.value)


def test_a_case_about_a_policy_that_does_not_run_here_fails(tmp_path: Path) -> None:
    """A slip of the pen would else pass for ever."""
    assert main(["test", str(folder(tmp_path, case(policy="schedular")))]) == 1


def test_check_shows_every_problem_and_the_status_is_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With file, line, column and a caret; all well is 0."""
    path = folder(tmp_path, case())
    assert main(["policies", "check", str(path)]) == 0
    assert "2 policies, 1 binding, 1 parameter object: all well" in capsys.readouterr().out
    (path / "bad.yaml").write_text(yaml.safe_dump(validating(check("object.spec.containers ="), name="bad")))
    assert main(["policies", "check", str(path)]) == 2
    error = capsys.readouterr().err
    assert "bad.yaml:" in error
    assert error.rstrip().endswith("^")


def test_list_and_show_tell_what_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a policy, in the order in which they run; and all expressions of one."""
    path = str(folder(tmp_path, case()))
    assert main(["policies", "list", path]) == 0
    rows = [line.split()[:4] for line in capsys.readouterr().out.splitlines()]
    assert rows[1:3] == [
        ["scheduler", "mutating", "CREATE", "pods"],
        ["limit", "validating", "CREATE", "pods"],
    ]
    assert main(["policies", "show", path, "--name", "limit"]) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["bindings"] == ["(unbound)"]
    assert shown["expressions"] == {"spec.validations[0].expression": "object.spec.containers.size() <= 1"}
    assert main(["policies", "show", path, "--name", "none"]) == 2
