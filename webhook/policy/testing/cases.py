"""`tests.yaml`: named cases for policies, and how an outcome is compared with the expectation. Pure.

docs/policies.md describes the format. A runner takes a Case and a PolicySet and returns an outcome, so that
`bayplan test` can run it exactly as the webhook would.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import yaml

from webhook.cel.libraries.quantity import canonical
from webhook.jsontools.diff import equal
from webhook.jsontools.path import pointer_steps
from webhook.policy.loading.document import PolicyDocument
from webhook.policy.loading.errors import PolicyError, Problem
from webhook.policy.loading.fields import Fields
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import AdmissionRequest, Operation, UserInfo, from_object, namespace_named

Objects = Sequence[Mapping[str, Any]]


Resolve = Callable[[str], Objects]
"""Returns the objects in a file; the path is relative to the folder of `tests.yaml`. Raises ValueError with a
message.
"""


OPERATIONS = ("CREATE", "UPDATE", "DELETE")


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected outcome of a case. Fields that are None or () are not checked, but `warnings` () means
    that none is expected, and `allowed` None that a denial is a difference.

    `object`: a part of the resulting object. `patch`: RFC 6902 operations. `absent`: JSON Pointers that must
    not exist in it.
    """

    allowed: bool | None = None
    message_contains: tuple[str, ...] = ()
    object: Mapping[str, Any] | None = None
    patch: Sequence[Mapping[str, Any]] | None = None
    warnings: tuple[str, ...] | None = None
    unchanged: bool | None = None
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `about`: the policies that it tests, () for all policies of its `CaseFile`.

    `cluster`: the objects of the cluster, None for no cluster (policies that need one are left out).
    `watched`: an object that is not listed does not exist, as in a watched cluster. `now`: seconds since the
    epoch; infinite if the case states no time, and then no exemption applies.
    """

    name: str
    file: str
    line: int
    about: tuple[str, ...]
    request: AdmissionRequest
    params: Objects
    cluster: Objects | None
    expect: Expectation
    watched: bool = False
    now: float = math.inf

    def with_params(self, policies: PolicySet) -> PolicySet:
        """Returns the set with the case's parameter objects, which replace objects of the same kind and
        name.
        """
        own = {_identity(item): item for item in self.params}
        kept = tuple(item for item in policies.params if _identity(item) not in own)
        return replace(policies, params=(*kept, *own.values()))


@dataclass(frozen=True, slots=True)
class CaseFile:
    """One `tests.yaml`. `policies`: the paths it names, () for its own folder."""

    file: str
    policies: tuple[str, ...]
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The actual outcome of a case, which is compared with the case's expectation."""

    allowed: bool
    message: str
    warnings: tuple[str, ...]
    object: Mapping[str, Any] | None
    patch: tuple[Mapping[str, Any], ...]


def read_cases(documents: Sequence[PolicyDocument], resolve: Resolve) -> CaseFile:
    """Returns the cases of one file. Raises PolicyError with all problems, each with its line."""
    problems: list[Problem] = []
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        file = documents[0].file if documents else "tests.yaml"
        raise PolicyError([Problem(file, 0, 0, "", "", "must be one document: a map with `cases`")])
    cases = read_case_file(Fields.of(documents[0], problems), resolve)
    if problems:
        raise PolicyError(problems)
    return cases


def read_case_file(top: Fields, resolve: Resolve) -> CaseFile:
    """Returns the cases in the outermost map of a file; problems are recorded in it."""
    policies = top.texts("policies")
    cases = [_read_case(row, resolve) for row in top.children("cases", required=": at least one")]
    top.done()
    names = [case.name for case in cases if case]
    for name in sorted({name for name in names if names.count(name) > 1}):
        top.wrong(f"two cases have the name {name!r}", "cases")
    return CaseFile(top.document.file, policies, tuple(case for case in cases if case))


def _read_case(row: Fields, resolve: Resolve) -> Case | None:
    obj, old = _object(row, "object", resolve), _object(row, "oldObject", resolve)
    operation = cast(
        Operation, row.choice("operation", OPERATIONS, "UPDATE" if old is not None else "CREATE")
    )
    subject = old if operation == "DELETE" and obj is None else obj
    namespace = row.text("namespace") or "default"
    labels = row.labels("namespaceLabels")
    user = _user(row.child("user"))
    now = row.moment("now", whole_day=False)
    case = Case(
        name=row.text("name", required=True),
        file=row.document.file,
        line=row.document.mark(row.path).line,
        about=row.text_or_texts("policy"),
        request=from_object(
            subject or {},
            operation,
            old_object=old,
            namespace=namespace,
            namespace_object=None,
            user_info=user,
            uid="00000000-0000-0000-0000-000000000000",
            dry_run=bool(row.flag("dryRun")),
        ),
        params=_objects(row, "params", resolve) or (),
        cluster=_objects(row, "cluster", resolve),
        expect=_expectation(row.child("expect", required=True)),
        watched=bool(row.flag("watched")),
        now=math.inf if now is None else now,
    )
    row.any_of("object", "oldObject", hint=": a manifest, or the path of one")
    row.done()
    if subject is None:
        if "object" not in row.value and "oldObject" in row.value:
            row.wrong(f"oldObject alone is a case of DELETE, not of {operation}; object is missing")
        return None
    if labels and case.request.namespace:
        namespace_object = namespace_named(case.request.namespace, labels)
        case = replace(case, request=replace(case.request, namespace_object=namespace_object))
    return case


def _user(fields: Fields | None) -> UserInfo:
    if fields is None:
        return UserInfo("kubernetes-admin", groups=("system:authenticated",))
    user = UserInfo(fields.text("username"), fields.text("uid"), fields.texts("groups"))
    fields.done()
    return user


def _object(row: Fields, name: str, resolve: Resolve) -> Mapping[str, Any] | None:
    """Returns one object: a map, or the path of a file with it (`file.yaml#name` if it contains several)."""
    value = row.manifest(name)
    if not isinstance(value, str):
        return value
    path, _, wanted_name = value.partition("#")
    items = [
        item for item in _resolved(row, name, path, resolve) if not wanted_name or _name(item) == wanted_name
    ]
    if len(items) == 1:
        return items[0]
    if not any(problem.message.startswith("cannot read") for problem in row.problems):
        row.wrong(f"{value} holds {len(items)} objects; a case takes one (path#name picks it)", name)
    return None


def _objects(row: Fields, name: str, resolve: Resolve) -> Objects | None:
    """Returns several objects: a list of maps and paths, or one of either."""
    items = row.manifests(name)
    if items is None:
        return None
    result: list[Mapping[str, Any]] = []
    for item in items:
        result.extend(_resolved(row, name, item, resolve) if isinstance(item, str) else [item])
    return result


def _resolved(row: Fields, name: str, path: str, resolve: Resolve) -> Objects:
    try:
        return resolve(path)
    except ValueError as error:
        row.wrong(f"cannot read it: {error}", name)
        return []


def _expectation(fields: Fields | None) -> Expectation:
    if fields is None:
        return Expectation()
    warnings = fields.texts("warnings")
    expectation = Expectation(
        allowed=fields.flag("allowed"),
        message_contains=fields.text_or_texts("messageContains"),
        object=fields.free_map("object", "a map: the part of the object that is expected"),
        patch=fields.free_list("patch", "a list of operations"),
        warnings=warnings if fields.value.get("warnings") is not None else None,
        unchanged=fields.flag("unchanged"),
        absent=fields.texts("absent"),
    )
    fields.done()
    if not any(value is not None for value in fields.value.values()):
        fields.wrong("says nothing")
    return expectation


def differences(expect: Expectation, outcome: CaseOutcome) -> list[str]:
    """Returns a text for each difference between expectation and outcome; for objects and patches, a unified
    diff. [] if there is none.
    """
    texts: list[str] = []
    if expect.allowed is not None and expect.allowed != outcome.allowed:
        texts.append(
            f"expected {_verdict(expect.allowed)}, got {_verdict(outcome.allowed)}: {outcome.message}"
        )
    elif expect.allowed is None and not outcome.allowed:
        texts.append(f"denied, which was not expected: {outcome.message}")
    lacking = [text for text in expect.message_contains if text not in outcome.message]
    texts += [f"the message lacks {text!r}: {outcome.message!r}" for text in lacking]
    texts += _warning_differences(expect.warnings, outcome.warnings)
    if expect.unchanged is not None and expect.unchanged != (not outcome.patch):
        expected = "no change" if expect.unchanged else "a change"
        texts.append(f"expected {expected}, got the patch:\n{_dump(list(outcome.patch))}")
    if expect.object is not None:
        texts += _diff("object", expect.object, project(outcome.object, expect.object))
    if expect.patch is not None:
        texts += _diff("patch", list(expect.patch), list(outcome.patch))
    texts += [
        f"{path} is there, and should not be" for path in expect.absent if _exists(outcome.object, path)
    ]
    return texts


def _verdict(allowed: bool) -> str:
    return "allowed" if allowed else "denied"


def _warning_differences(expected: tuple[str, ...] | None, got: tuple[str, ...]) -> list[str]:
    """Returns the differences between expected and actual warnings, as text.

    Each expected text must be part of a warning; () means that no warning is expected, None that any are.
    """
    if expected is None:
        return []
    if not expected and got:
        return [f"expected no warnings, got: {'; '.join(got)}"]
    missing = [text for text in expected if not any(text in warning for warning in got)]
    return [f"no warning says {text!r}; got: {'; '.join(got) or 'none'}" for text in missing]


def project(actual: Any, expected: Any) -> Any:
    """Returns the part of `actual` that `expected` mentions: for maps only the keys of `expected`; lists of
    equal length element by element; any other value as it is. An amount of a resource is the expected one if
    it is equal: 2 and "2", "1.5" and "1500m".
    """
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return {
            key: (_amounts if key in ("limits", "requests") else project)(actual[key], value)
            for key, value in expected.items()
            if key in actual
        }
    if isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        return [project(item, other) for item, other in zip(actual, expected, strict=True)]
    return actual


def _amounts(actual: Any, expected: Any) -> Any:
    shown = project(actual, expected)
    if shown is actual or not isinstance(shown, dict):
        return shown
    return {
        name: expected[name] if canonical(str(expected[name])) == canonical(str(amount)) else amount
        for name, amount in shown.items()
    }


def _diff(title: str, expected: Any, actual: Any) -> list[str]:
    if equal(expected, actual):
        return []
    lines = difflib.unified_diff(
        _dump(expected).splitlines(),
        _dump(actual).splitlines(),
        f"expected {title}",
        f"actual {title}",
        lineterm="",
    )
    return ["\n".join(lines)]


def _exists(obj: Any, path: str) -> bool:
    """Returns whether a JSON Pointer exists in an object."""
    node = obj
    for key in pointer_steps(f"/{path.strip('/')}"):
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            return False
    return True


def _dump(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=True, allow_unicode=True, width=100)


def _name(obj: Mapping[str, Any]) -> str:
    metadata = obj.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""


def _identity(obj: Mapping[str, Any]) -> tuple[str, ...]:
    return str(obj.get("apiVersion")), str(obj.get("kind")), _name(obj)
