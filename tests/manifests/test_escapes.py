"""Every annotation that leaves the plan is one that the admission policy of the escapes looks at."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.manifests import escapes
from tests.manifests.test_conditions import KIND_OF, annotated
from webhook.cel import Declarations, Program, compile
from webhook.workloads import KINDS, WorkloadKind, read
from webhook.workloads.kinds import row_of

Json = dict[str, Any]
POLICY: Json = next(
    document
    for document in yaml.safe_load_all(escapes.FILE.read_text())
    if document["kind"] == "ValidatingAdmissionPolicy" and document["metadata"]["name"] == "bayplan-escapes"
)
SKIP = {"bayplan.dev/skip": "true"}
ROWS = [row for row in KINDS.values() if row.pods.metadata or row.pods.specs]
PLACES = [(row, path) for row in ROWS for path in ("metadata", *row.pods.metadata)]
IDS = [f"{row.name} {path}" for row, path in PLACES]


def variable(name: str) -> Program:
    """A variable of the policy that asks for nothing but the object before and after."""
    (expression,) = (row["expression"] for row in POLICY["spec"]["variables"] if row["name"] == name)
    return compile(expression, Declarations(variables={"object": None, "oldObject": None}))


NOTES, BEFORE = variable("notes"), variable("before")


def all_notes(lists: Any) -> list[Json]:
    """All annotations of the lists that the variables hold."""
    return [note for notes in lists for note in notes if note]


def with_note(path: str) -> Json:
    """An object that has the annotation at this path and nothing else: in a second item of a list."""
    value: Any = {"annotations": SKIP}
    for step in reversed(path.split(".")):
        name = step.rstrip("[]{}")
        if step.endswith("[]"):
            value = [{}, value]
        elif step.endswith("{}"):
            value = {"a": {}, "b": value}
        value = {name: value}
    return {"metadata": {}} | value  # type: ignore[no-any-return]


@pytest.mark.parametrize(("row", "path"), PLACES, ids=IDS)
def test_an_annotation_is_seen_wherever_the_kind_keeps_one(row: WorkloadKind, path: str) -> None:
    """After a change, and before it: who leaves it as it was needs nothing."""
    obj = with_note(path)
    assert all_notes(NOTES.evaluate({"object": obj, "oldObject": None})) == [SKIP]
    assert all_notes(BEFORE.evaluate({"object": {}, "oldObject": obj})) == [SKIP]
    assert BEFORE.evaluate({"object": obj, "oldObject": None}) == []


def test_what_the_code_takes_for_skipped_is_seen() -> None:
    """Of every kind that it reads, whichever template says so."""
    skipped = 0
    for kind, plain in KIND_OF.items():
        row = row_of(plain["apiVersion"], kind)
        assert row is not None
        for path in ("metadata", *row.pods.metadata):
            for obj in annotated(kind, path, SKIP):
                skipped += read(obj).skip
                assert SKIP in all_notes(NOTES.evaluate({"object": obj, "oldObject": None})), (kind, path)
    assert skipped > len(KIND_OF)


def test_what_a_train_job_patches_into_its_runtime_is_seen() -> None:
    """Kubeflow trainer v2.2 writes it onto the JobSet, its jobs and their pods."""
    noted = {"metadata": {"annotations": SKIP}}
    for template in (
        noted,
        {"spec": {"replicatedJobs": [{"name": "node", "template": noted}]}},
        {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": noted}}}]}},
    ):
        patch = {"manager": "team", "trainingRuntimeSpec": {"template": template}}
        obj = {"metadata": {}, "spec": {"runtimePatches": [patch]}}
        assert all_notes(NOTES.evaluate({"object": obj, "oldObject": None})) == [SKIP]


def test_the_policy_is_asked_about_every_kind_of_the_table() -> None:
    """Each whose objects have pods, or are handed on to such; on creation and on update."""
    rules = POLICY["spec"]["matchConstraints"]["resourceRules"]
    asked = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
    assert asked == {(row.group, row.resource) for row in ROWS}
    assert all(rule["operations"] == ["CREATE", "UPDATE"] for rule in rules)


def test_the_expressions_are_what_the_table_of_kinds_gives() -> None:
    """A new row is looked at, or this fails until the file is written again."""
    text = escapes.FILE.read_text()
    assert escapes.written(text) == text


def test_a_variable_that_is_not_there_is_told() -> None:
    """The file is edited by hand around the expressions."""
    text = escapes.FILE.read_text().replace("- name: claims", "- name: says")
    with pytest.raises(ValueError, match="has the variable claims 0 times"):
        escapes.written(text)
