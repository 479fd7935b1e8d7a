"""Loads a PolicySet from policy files: everything or nothing, with all problems found at once.

A file contains policies, bindings, exemptions, and objects of any other kind. Objects of a policy's
`paramKind` are its parameters; other objects (manifests of test cases, Kustomize's files) are ignored, and so
are test cases (`tests.yaml`), which `bayplan test` reads.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from webhook.cel import Function
from webhook.files.yaml_documents import Mark
from webhook.policy.functions.table import FUNCTIONS
from webhook.policy.loading.document import PolicyDocument, parse
from webhook.policy.loading.errors import PolicyError, Problem
from webhook.policy.loading.fields import Fields
from webhook.policy.loading.parameters import faults, own_rules
from webhook.policy.loading.read import (
    BINDING_KINDS,
    OUR_GROUP,
    POLICY_KINDS,
    Names,
    read_binding,
    read_policy,
)
from webhook.policy.loading.read_exemption import EXCEPTION_KIND, read_exemption
from webhook.policy.model.parameters import is_parameters
from webhook.policy.model.policy import (
    MutatingPolicy,
    Policy,
    PolicyBinding,
    PolicyException,
    PolicySet,
    ValidatingPolicy,
    like,
)

Functions = Mapping[str, Function]


_NO_SCHEMAS: Mapping[str, Any] = {}


TEST_FILES = ("tests.yaml", "tests.yml")


VERSIONS = {
    "admissionregistration.k8s.io": ("v1", "v1beta1", "v1alpha1"),
    "bayplan.dev": ("v1alpha1",),
}


ROLES = {
    **dict.fromkeys(POLICY_KINDS, "policy"),
    **dict.fromkeys(BINDING_KINDS, "binding"),
    EXCEPTION_KIND: "exemption",
}
"""The role of a document by kind. A document of any other kind may be a parameter object."""


def versions_of(kind: str) -> list[str]:
    """Returns the apiVersions in which a kind is read; exemptions exist only in Bayplan's."""
    groups = {OUR_GROUP: VERSIONS[OUR_GROUP]} if kind == EXCEPTION_KIND else VERSIONS
    return [f"{group}/{short}" for group, shorts in groups.items() for short in shorts]


def load(
    files: Iterable[tuple[str, str]],
    *,
    functions: Functions | None = None,
    revision: str = "",
    schemas: Mapping[str, Any] = _NO_SCHEMAS,
) -> PolicySet:
    """Returns the policies in files, given as (path, text).

    `functions`: the functions by name that bayplan.dev policies may call in addition to Kubernetes' own; by
    default those of `webhook.policy.functions`. `schemas`: JSON schemas of parameters, by the path of the
    parameters' file. Raises PolicyError with every problem found.
    """
    functions = FUNCTIONS if functions is None else functions
    problems: list[Problem] = []
    texts = [(path, text) for path, text in files if PurePosixPath(path).name not in TEST_FILES]
    sorted_out = _sort_out(_parsed(texts, problems), problems)
    _once([*sorted_out["policy"], *sorted_out["binding"], *sorted_out["exemption"]], problems)
    bindings = [read_binding(Fields.of(document, problems)) for document in sorted_out["binding"]]
    warnings: list[Problem] = []
    policies = _read_policies(sorted_out["policy"], bindings, functions, problems, warnings)
    problems.extend(_orphans(sorted_out["binding"], bindings, sorted_out["policy"]))
    exemptions = _read_exemptions(sorted_out["exemption"], sorted_out["policy"], problems)
    params = _params(sorted_out["param"], policies)
    _once(params, problems)
    rules = own_rules(schemas)
    problems.extend(problem for document in params for problem in faults(document, schemas, rules))
    if problems:
        raise PolicyError(problems)
    return PolicySet(
        mutating=in_order(policy for policy in policies if isinstance(policy, MutatingPolicy)),
        validating=tuple(
            sorted((p for p in policies if isinstance(p, ValidatingPolicy)), key=lambda policy: policy.name)
        ),
        params=tuple(document.value for document in params),
        rules=rules,
        exemptions=exemptions,
        warnings=tuple(map(str, sorted(warnings))),
        revision=revision,
        files=tuple(path for path, _ in texts),
    )


def _parsed(texts: Iterable[tuple[str, str]], problems: list[Problem]) -> list[PolicyDocument]:
    """Returns the objects in the files (path, text), with Lists expanded."""
    documents: list[PolicyDocument] = []
    for path, text in texts:
        try:
            unfolded = [item for document in parse(path, text) for item in _unfold(document)]
            if not unfolded:
                problems.append(Problem(path, 0, 0, "", "", "holds nothing; a policy may have been cut off"))
            documents.extend(unfolded)
        except PolicyError as error:
            problems.extend(error.problems)
    return documents


def in_order(policies: Iterable[MutatingPolicy]) -> tuple[MutatingPolicy, ...]:
    """Returns the policies that do not read `plan`, then those that do, each group sorted by name."""
    return tuple(sorted(policies, key=lambda policy: (policy.uses_plan, policy.name)))


def _unfold(document: PolicyDocument) -> list[PolicyDocument]:
    """Returns the items of a List as documents of their own."""
    value = document.value
    items = value.get("items") if isinstance(value, dict) and value.get("kind") == "List" else None
    if not isinstance(items, list):
        return [document]
    result = []
    for index, item in enumerate(items):
        head = ("items", index)
        marks: dict[tuple[str | int, ...], Mark] = {
            path[2:]: mark for path, mark in document.marks.items() if path[:2] == head
        }
        result.append(PolicyDocument(document.file, item, marks))
    return result


def _sort_out(
    documents: Sequence[PolicyDocument], problems: list[Problem]
) -> dict[str, list[PolicyDocument]]:
    result: dict[str, list[PolicyDocument]] = {"policy": [], "binding": [], "exemption": [], "param": []}
    for document in documents:
        if role := _role(document, problems):
            result[role].append(document)
    return result


def _once(documents: Sequence[PolicyDocument], problems: list[Problem]) -> None:
    """Records a problem for every object that occurs a second time, by kind, namespace and name."""
    seen: dict[tuple[str, ...], PolicyDocument] = {}
    for document in documents:
        first = seen.setdefault(_identity(document), document)
        if first is not document:
            problems.append(document.problem((), f"occurs twice; the first is in {first.file}"))


def _params(documents: Sequence[PolicyDocument], policies: Sequence[Policy]) -> list[PolicyDocument]:
    """Returns the objects of the policies' parameter kinds, and always those of Bayplan's own parameters."""
    kinds = {
        (policy.param_kind.api_version, policy.param_kind.kind) for policy in policies if policy.param_kind
    }
    return [
        row
        for row in documents
        if (row.value["apiVersion"], row.value["kind"]) in kinds or is_parameters(row.value)
    ]


def _role(document: PolicyDocument, problems: list[Problem]) -> str:
    """Returns "policy", "binding", "exemption" or "param"; "" for an ignored document, and for an invalid
    one, whose problem is recorded.
    """
    value = document.value
    kind, version = (value.get("kind"), value.get("apiVersion")) if isinstance(value, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(version, str):
        problems.append(document.problem((), "is no Kubernetes object: apiVersion and kind are missing"))
        return ""
    if version.rpartition("/")[0].endswith("kustomize.config.k8s.io"):
        return ""
    if kind not in ROLES:
        return "param"
    if version not in versions_of(kind):
        message = f"not a version of {kind}; known: {', '.join(versions_of(kind))}"
        problems.append(document.problem(("apiVersion",), message))
        return ""
    return ROLES[kind]


def _identity(document: PolicyDocument) -> tuple[str, ...]:
    value = document.value
    metadata = value.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    group = "" if value["kind"] in ROLES else value["apiVersion"]
    return (group, value["kind"], str(names.get("namespace", "")), str(names.get("name", "")))


def _read_policies(
    documents: Sequence[PolicyDocument],
    bindings: Sequence[tuple[str, PolicyBinding]],
    functions: Functions,
    problems: list[Problem],
    warnings: list[Problem],
) -> list[Policy]:
    policies = []
    for document in documents:
        names = Names.of(document)
        own = tuple(
            sorted(
                (row for kind, row in bindings if (kind, row.policy) == (names.kind, names.name)),
                key=lambda binding: binding.name,
            )
        )
        policies.append(read_policy(Fields.of(document, problems), own, functions, warnings))
    return [policy for policy in policies if policy is not None]


def _read_exemptions(
    documents: Sequence[PolicyDocument], policies: Sequence[PolicyDocument], problems: list[Problem]
) -> tuple[PolicyException, ...]:
    """Returns the exemptions, sorted by name; each must name existing policies."""
    names = sorted(Names.of(document).name for document in policies)
    exemptions = []
    for document in documents:
        exemption = read_exemption(Fields.of(document, problems))
        for index, pattern in enumerate(exemption.policies if exemption is not None else ()):
            if not any(like(name, (pattern,)) for name in names):
                near = ", ".join(difflib.get_close_matches(pattern, names, 3))
                mend = f"there is {near}" if near else "name the folder of the policies too"
                message = f"no policy {pattern!r} in the files; {mend}"
                problems.append(document.problem(("spec", "policies", index), message))
        if exemption is not None:
            exemptions.append(exemption)
    return tuple(sorted(exemptions, key=lambda row: row.name))


def _orphans(
    documents: Sequence[PolicyDocument],
    bindings: Sequence[tuple[str, PolicyBinding]],
    policies: Sequence[PolicyDocument],
) -> Iterable[Problem]:
    """Yields a problem for each binding that names an unknown policy: most likely a typing error."""
    names_there = {(names.kind, names.name) for names in map(Names.of, policies)}
    for document, (kind, binding) in zip(documents, bindings, strict=True):
        if binding.policy and (kind, binding.policy) not in names_there:
            yield document.problem(("spec", "policyName"), f"no {kind} of this name in the files")
