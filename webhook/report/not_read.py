"""What a report has to assume: kinds whose pods are not read, and namespaces that are in no file. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from planner.model.words import counted, listed
from webhook.admission.configuration.settings import Mode
from webhook.report.collect import Subject
from webhook.report.model import Report, Result

NAMESPACE = "namespace"
"""The policy under which a report tells of a namespace that is in no file."""
KIND = "kind"
"""The same for an object of a kind that is not read."""
ALWAYS_THERE = frozenset({"default"})
"""Namespaces that the API server makes itself, and in which manifests without a namespace stand."""


def of_unread_kinds(subjects: Iterable[Subject], pods: Mapping[str, str]) -> tuple[Result, ...]:
    """A warning for each object whose pods are not read; `pods`: by object the field that describes them."""
    return tuple(_of_kind(subject, pods[subject.name]) for subject in subjects if subject.name in pods)


def unread_kind(api_version: str, kind: str) -> str:
    """What becomes of an object of a kind whose pods are not read."""
    return (
        f"{kind} of {api_version} is not a supported kind: the object is admitted "
        "unchanged; each pod that it creates is handled by itself when it is created, and belongs to no gang"
    )


def _of_kind(subject: Subject, field: str) -> Result:
    message = unread_kind(subject.api_version, subject.name.split("/")[-2])
    return Result(
        subject.name, "warn", "policy", KIND, "Unknown", message, subject.file, subject.line(field), field,
        api_version=subject.api_version,
    )  # fmt: skip


def of_unknown_namespaces(
    subjects: Iterable[Subject], known_names: Collection[str], modes: Mapping[str, Mode]
) -> tuple[Result, ...]:
    """A result for each namespace that has no known name and is not always there, at the first object in it.

    A warning where other namespaces are known, for then this may be a slip; else it is skipped, for the files
    tell of none. `modes`: in which mode each was judged.
    """
    by_name: dict[str, list[Subject]] = {}
    for subject in subjects:
        name, _, rest = subject.name.partition("/")
        if "/" in rest and name not in known_names and name not in ALWAYS_THERE:
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
    """In a line, the namespaces of which nothing is known and no warning tells; "" for none."""
    names = [
        result.reference[0]
        for result in report.results
        if (result.policy, result.result) == (NAMESPACE, "skip")
    ]
    return f"judged without the labels of namespaces that are in no file: {listed(names, 6)}" if names else ""
