"""Makes results for what a report could not read: objects whose pods are not read, and namespaces without a
Namespace object, for which it assumes a mode and no labels. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from planner.model.words import counted, listed
from webhook.admission.configuration.settings import Mode
from webhook.report.collect import Subject
from webhook.report.model import Report, Result

NAMESPACE = "namespace"
"""The policy name of results for namespaces that are in no file."""
KIND = "kind"
"""The policy name of results for objects whose pods are not read."""
BUILT_IN_NAMESPACES = frozenset({"default"})
"""Namespaces that always exist: the API server creates them. Manifests without a namespace use `default`."""


def of_unread_kinds(subjects: Iterable[Subject], pods: Mapping[str, tuple[str, str]]) -> tuple[Result, ...]:
    """Returns a warning for each object whose pods are not read.

    `pods`: for each such object (NAMESPACE/KIND/NAME), the field that describes its pods, and a sentence that
    says how it is handled.
    """
    return tuple(_of_kind(subject, *pods[subject.name]) for subject in subjects if subject.name in pods)


def _of_kind(subject: Subject, field: str, message: str) -> Result:
    return Result(
        subject.name, "warn", "policy", KIND, "Unknown", message, subject.file, subject.line(field), field,
        api_version=subject.api_version,
    )  # fmt: skip


def of_unknown_namespaces(
    subjects: Iterable[Subject], known_names: Collection[str], modes: Mapping[str, Mode]
) -> tuple[Result, ...]:
    """Returns a result for each namespace without a Namespace object. File and line are those of the first
    object in the namespace.

    The result is a warning if other Namespaces are known, because the name may be a mistake then; otherwise a
    skip. `modes`: the mode in which the objects of each namespace were evaluated.
    """
    by_name: dict[str, list[Subject]] = {}
    for subject in subjects:
        name, _, rest = subject.name.partition("/")
        if "/" in rest and name not in known_names and name not in BUILT_IN_NAMESPACES:
            by_name.setdefault(name, []).append(subject)
    return tuple(
        _of_namespace(name, inside, modes[name], bool(known_names)) for name, inside in by_name.items()
    )


def _of_namespace(name: str, inside: list[Subject], mode: Mode, others_known: bool) -> Result:
    first, field = inside[0], "metadata.namespace"
    count = len(inside)
    message = (
        f"the Namespace {name} is in no file: {counted(count, 'object')} judged as in mode {mode}, "
        "and without its labels; where it does not exist, the API server refuses what is to stand in it"
    )
    return Result(
        f"{name}/Namespace/{name}", "warn" if others_known else "skip", "policy", NAMESPACE, "Unknown",
        message, first.file, first.line(field), field, api_version="v1",
    )  # fmt: skip


def assumptions(report: Report) -> str:
    """Returns a line that lists the unknown namespaces for which `of_unknown_namespaces` made a skip, not a
    warning; "" if there are none.
    """
    names = [
        result.reference[0]
        for result in report.results
        if (result.policy, result.result) == (NAMESPACE, "skip")
    ]
    return f"judged without the labels of namespaces that are in no file: {listed(names, 6)}" if names else ""
