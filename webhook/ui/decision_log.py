"""Reads Bayplan's decisions in a cluster, from Events of the controller and Reports of the replicas.

Both classes are handlers of a `Reflector` (`webhook.kube.api`), which lists and watches the objects. They
ignore objects of an unexpected form, because other users may write Events and Reports too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from webhook.kube.api.client import Event, Json
from webhook.kube.controller.actions.events import told_at
from webhook.report.in_cluster import NAME
from webhook.report.model import MUTATION
from webhook.ui.document import MAX_DECISIONS
from webhook.ui.picture import DecisionEntry, PolicyCounts

EVENTS = "/api/v1/events"
EVENTS_QUERY = {"fieldSelector": "reportingComponent=bayplan"}
REPORTS_QUERY = {"fieldSelector": f"metadata.name={NAME}"}

KEPT_EVENTS = 10_000
"""The maximum number of Events that are kept, the newest ones. The API server deletes Events after an
hour.
"""


class EventLog:
    """The decisions in the Events of the controller. `notify`: called after each change."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._entries: dict[str, DecisionEntry] = {}

    def newest(self, count: int = MAX_DECISIONS) -> list[DecisionEntry]:
        """Returns the newest decisions, at most `count`, the latest first."""
        return sorted(self._entries.values(), key=lambda entry: (-entry.time, entry.id))[:count]

    def read(self, item: Json) -> DecisionEntry | None:
        """Returns the decision in an Event; None if the Event does not have the expected form."""
        try:
            about = item["involvedObject"]
            name = f"{about['namespace']}/{about['kind']}/{about['name']}"
            return DecisionEntry(
                f"event/{item['metadata']['namespace']}/{item['metadata']['name']}",
                told_at(item),
                name,
                str(item["reason"]),
                str(item["message"]),
                item.get("type") == "Warning",
            )
        except (KeyError, TypeError, ValueError):
            return None

    def replaced(self, items: Iterable[DecisionEntry | None], version: int) -> None:
        """Replaces all decisions by those of a complete list of Events."""
        newest = sorted(filter(None, items), key=lambda entry: entry.time)[-KEPT_EVENTS:]
        self._entries = {entry.id: entry for entry in newest}
        self._notify()

    def changed(self, event: Event) -> None:
        """Updates the decisions for an Event that was added, repeated or deleted."""
        entry = self.read(event.object)
        if entry is None:
            return
        self._entries.pop(entry.id, None)
        if event.type != "DELETED":
            self._entries[entry.id] = entry  # at the end: a repeated Event has a new time
            for key in list(islice(self._entries, max(0, len(self._entries) - KEPT_EVENTS))):
                del self._entries[key]
        self._notify()


class ReportLog:
    """The decisions in the Reports that the replicas write: one Report per namespace, with the results of
    policies and of the plan for each object. `notify`: called after each change.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._reports: dict[str, tuple[str, list[Json]]] = {}
        """The revision of the policies and the results in each Report, by the Report's namespace."""

    def newest(self, count: int = MAX_DECISIONS) -> list[DecisionEntry]:
        """Returns the newest results as decisions, at most `count`, the latest first."""
        entries = (
            entry
            for space, (_, rows) in self._reports.items()
            for row in rows
            for entry in _entries(space, row)
        )
        return sorted(entries, key=lambda entry: (-entry.time, entry.id))[:count]

    def policies(self) -> Iterator[PolicyCounts]:
        """Yields the counts of each policy's results, by namespace and outcome."""
        return counts_by_policy(
            (str(row.get("policy", "")), space, _outcome(row))
            for space, (_, rows) in self._reports.items()
            for row in rows
            if row.get("source") != "bayplan/plan"
        )

    def revisions(self) -> tuple[str, ...]:
        """Returns the different revisions of policies in the Reports of all namespaces, sorted."""
        return tuple(sorted({revision for revision, _ in self._reports.values() if revision}))

    def read(self, item: Json) -> tuple[str, tuple[str, list[Json]]]:
        """Returns the namespace of a Report, the revision of the policies that made it ("" if not stated),
        and its results.
        """
        metadata = item["metadata"]
        revision = str((metadata.get("annotations") or {}).get("bayplan.dev/revision", ""))
        rows = [row for row in item.get("results") or () if isinstance(row, dict)]
        return str(metadata.get("namespace", "")), (revision, rows)

    def replaced(self, items: Iterable[Any], version: int) -> None:
        """Replaces all Reports by a complete list."""
        self._reports = dict(items)
        self._notify()

    def changed(self, event: Event) -> None:
        """Updates the Reports for one that was written or deleted."""
        namespace, report = self.read(event.object)
        if event.type == "DELETED":
            self._reports.pop(namespace, None)
        else:
            self._reports[namespace] = report
        self._notify()


def counts_by_policy(results: Iterable[tuple[str, str, str]]) -> Iterator[PolicyCounts]:
    """Yields the counts of each policy, from triples of policy, namespace and outcome."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for policy, namespace, result in results:
        by_result = counts.setdefault(policy, {}).setdefault(namespace, {})
        by_result[result] = by_result.get(result, 0) + 1
    return (PolicyCounts(policy, namespaces) for policy, namespaces in sorted(counts.items()))


def _outcome(row: Json) -> str:
    return (
        "changed" if row.get("result") == "pass" and row.get("rule") == MUTATION else str(row.get("result"))
    )


def _entries(namespace: str, row: Json) -> Iterator[DecisionEntry]:
    """Yields a decision for a result of a Report; nothing if the result has an unexpected form."""
    try:
        resource = row["resources"][0]
        name = f"{namespace}/{resource['kind']}/{resource['name']}"
        policy = "" if row.get("source") == "bayplan/plan" else str(row["policy"])
        kind, message = str(row.get("rule") or row["result"]), str(row.get("message", ""))
        moment = float((row.get("timestamp") or {}).get("seconds", 0))
        warning = row["result"] in ("fail", "warn", "error")
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        return
    yield DecisionEntry(f"report/{name}/{policy}/{kind}", moment, name, kind, message, warning, policy)
