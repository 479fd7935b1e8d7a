"""The JSON schemas for editors: made from the loader's readers, so that both refuse the same structure."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.docs.generate_policy_schemas import FOLDER, SCHEMAS, text
from tests.webhook.policy.helpers import binding
from tests.webhook.policy.loading.test_load import FULL_MUTATING, FULL_VALIDATING
from webhook.policy import PolicyError, load
from webhook.policy.loading.document import parse
from webhook.policy.testing.cases import read_cases

Json = dict[str, Any]
Path_ = tuple[str | int, ...]

STRUCTURE = (
    "is required",
    "unknown field",
    "must be ",
    "stands beside",
    "needs name or selector",
    "is no Kubernetes object",
    "not a version of",
    "is no date or time",
)
"""What messages of the loader say where fields are missing, unknown, of the wrong type or together."""

BINDING = binding(
    FULL_VALIDATING,
    paramRef={"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Allow"},
    matchResources={"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
)

EXEMPTION = {
    "apiVersion": "bayplan.dev/v1alpha1",
    "kind": "PolicyException",
    "metadata": {"name": "e"},
    "spec": {
        "policies": ["validate"],
        "until": "2026-12-31T18:00:00Z",
        "reason": "why",
        "match": {
            "namespaces": ["a"],
            "kinds": ["Job"],
            "names": ["b-*"],
            "users": ["u"],
            "groups": ["g"],
            "selector": {"matchLabels": {"a": "b"}},
            "namespaceSelector": {"matchLabels": {"a": "b"}},
        },
        "conditions": [{"name": "c", "expression": "true"}],
    },
}

CASES = {
    "policies": ["."],
    "cases": [
        {
            "name": "a case with every field",
            "policy": ["p"],
            "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
            "oldObject": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
            "operation": "UPDATE",
            "namespace": "team-a",
            "namespaceLabels": {"tier": "gold"},
            "user": {"username": "jane", "uid": "1", "groups": ["research"]},
            "dryRun": False,
            "params": [{"kind": "ConfigMap"}, "params.yaml"],
            "cluster": "cluster.yaml",
            "watched": True,
            "now": "2026-11-01",
            "expect": {
                "allowed": True,
                "messageContains": "no",
                "warnings": [],
                "object": {},
                "absent": ["/spec"],
                "patch": [],
                "unchanged": False,
            },
        }
    ],
}


@cache
def validator(name: str) -> jsonschema.protocols.Validator:
    """Of a schema that is checked in, as an editor reads it."""
    return jsonschema.Draft7Validator(json.loads((FOLDER / name).read_text()))


def refused(name: str, document: Any) -> bool:
    """Whether the schema refuses it."""
    return not validator(name).is_valid(document)


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_is_checked_in_is_what_the_readers_ask_for(name: str) -> None:
    """`python -m tests.docs.generate_policy_schemas` writes them."""
    jsonschema.Draft7Validator.check_schema(json.loads((FOLDER / name).read_text()))
    assert (FOLDER / name).read_text() == text(SCHEMAS[name]())


@pytest.mark.parametrize("file", sorted(FOLDER.rglob("*.yaml")), ids=lambda file: file.parent.name)
def test_every_shipped_policy_and_test_is_valid(file: Path) -> None:
    """And the shipped parameters, whose own schema says the rest."""
    name = "tests.schema.json" if file.name == "tests.yaml" else "policy.schema.json"
    for document in yaml.safe_load_all(file.read_text()):
        assert list(validator(name).iter_errors(document)) == []


def test_every_field_has_a_meaning_for_the_editor() -> None:
    """But for the maps around expressions and what every Kubernetes object has."""
    plain = {"apiVersion", "kind", "metadata", "spec", "status", "labels", "name", "key", "uid", "namespace"}
    plain |= {"creationTimestamp", "resourceVersion", "generation", "managedFields", "selector", "groups"}
    plain |= {"jsonPatch", "applyConfiguration", "username"}

    def bare(schema: Any) -> Iterator[str]:
        for name, rule in schema.get("properties", {}).items() if isinstance(schema, dict) else ():
            if name not in plain and isinstance(rule, dict) and rule and "description" not in rule:
                yield name
            yield from bare(rule)
            yield from bare(rule.get("items"))

    documents = [json.loads((FOLDER / name).read_text()) for name in SCHEMAS]
    schemas = [
        schema for document in documents for schema in (document, *document.get("definitions", {}).values())
    ]
    assert sorted({name for schema in schemas for name in bare(schema)}) == []


def places(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Each place in a document, the outermost first."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inside in items:
        yield from places(inside, (*path, step))


def edits(document: Json) -> Iterator[tuple[str, Json]]:
    """The document with one field left out, misspelt, emptied or of another type."""
    for path in places(document):
        shown = ".".join(map(str, path))
        for word, value in (("a number", 7), ("a word", "zzz"), ("empty", {}), ("a list", [3])):
            yield f"{shown} is {word}", _changed(document, path, value)
        if isinstance(path[-1], str):
            yield f"{shown} is gone", _changed(document, path)
            yield f"{shown} is misspelt", _changed(document, path, misspelt=True)


def _changed(document: Json, path: Path_, *value: Any, misspelt: bool = False) -> Json:
    edited = copy.deepcopy(document)
    inside: Any = edited
    for step in path[:-1]:
        inside = inside[step]
    former = inside.pop(path[-1]) if isinstance(inside, dict) else inside[path[-1]]
    if misspelt:
        inside[f"{path[-1]}s"] = former
    elif value:
        inside[path[-1]] = value[0]
    return edited


def loader_says(*documents: Json) -> list[str]:
    """What the loader says of these."""
    try:
        load([("p.yaml", yaml.dump_all(documents, Dumper=yaml.CSafeDumper))])
    except PolicyError as error:
        return [problem.message for problem in error.problems]
    return []


def runner_says(document: Json) -> list[str]:
    """What the reader of cases says of these."""
    try:
        read_cases(parse("tests.yaml", yaml.dump(document, Dumper=yaml.CSafeDumper)), lambda path: [document])
    except PolicyError as error:
        return [problem.message for problem in error.problems]
    return []


def compared(name: str, document: Json, says: Any) -> None:
    """Each edit is refused by both, where it is one of structure, or by none."""
    differing = []
    for edit, edited in edits(document):
        problems = [message for message in says(edited) if any(word in message for word in STRUCTURE)]
        if bool(problems) != refused(name, edited):
            differing.append((edit, problems))
    assert differing == []


@pytest.mark.parametrize("document", [FULL_MUTATING, FULL_VALIDATING], ids=["mutating", "validating"])
def test_a_policy_s_structure_is_refused_by_both_or_by_none(document: Json) -> None:
    """Each field in turn is left out, misspelt, and given other types."""
    compared("policy.schema.json", document, loader_says)


def test_a_binding_s_structure_is_refused_by_both_or_by_none() -> None:
    """The same for a binding."""
    compared("policy.schema.json", BINDING, lambda edited: loader_says(FULL_VALIDATING, edited))


def test_an_exemption_s_structure_is_refused_by_both_or_by_none() -> None:
    """The same for a PolicyException."""
    compared("policy.schema.json", EXEMPTION, lambda edited: loader_says(FULL_VALIDATING, edited))


def test_a_case_s_structure_is_refused_by_both_or_by_none() -> None:
    """The same for cases."""
    compared("tests.schema.json", CASES, runner_says)


@pytest.mark.parametrize(
    ("kind", "valid"), [("List", True), ("ConfigMap", True), ("MutatingAdmissionPolicy", False)]
)
def test_other_kinds_are_parameters_and_lists_are_looked_into(kind: str, valid: bool) -> None:
    """A ConfigMap may hold anything, a policy may not."""
    inside: Sequence[Json] = [{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}]
    document = {"apiVersion": "bayplan.dev/v1alpha1", "kind": kind, "items": list(inside)}
    assert refused("policy.schema.json", document) is not valid
    wrong = {**document, "kind": "List", "items": [{"apiVersion": "bayplan.dev/v1alpha1", "kind": POLICY}]}
    assert refused("policy.schema.json", wrong)


POLICY = "ValidatingAdmissionPolicy"
