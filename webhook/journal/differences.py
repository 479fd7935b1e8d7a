"""Reports the differences between recorded and replayed decisions, by policy and namespace. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from planner.model.words import listed
from webhook.admission.decision_record import PLAN
from webhook.journal.changes import changes_differ
from webhook.journal.entries import LONGEST, Answered, JournalEntry
from webhook.report.model import Fate, Outcome, Report, Result

CHANGED = "fields"
"""The name of the result property that lists the fields that are changed differently."""
EXAMPLES = 3
"""Maximum number of objects that a result for several admissions names."""

Key = tuple[str, str, str, str, str]


@dataclass(slots=True)
class Differences:
    """Collects the differences between recorded and replayed answers. Equal answers are only counted.

    Admissions with the same difference (rule, policy, namespace, kind, fields) are one result, which has the
    message of the first. `was`, `now`: number of admissions by recorded and by replayed outcome. `first`,
    `last`: times of the first and last admission, in seconds since the epoch.
    """

    admissions: int = 0
    was: Counter[str] = field(default_factory=Counter)
    now: Counter[str] = field(default_factory=Counter)
    first: float = 0.0
    last: float = 0.0
    _fates: list[tuple[str, Fate]] = field(default_factory=list)
    _results: dict[Key, Result] = field(default_factory=dict)
    _names: dict[Key, list[str]] = field(default_factory=dict)
    _counts: Counter[Key] = field(default_factory=Counter)

    def add(self, entry: JournalEntry, now: Answered) -> None:
        """Adds an admission, with its replayed answer `now`."""
        self.admissions += 1
        self.first, self.last = self.first or entry.time, entry.time
        self.was[entry.answer.outcome] += 1
        self.now[now.outcome] += 1
        self._fates.append((entry.request.namespace, now.outcome))
        for result in differences(entry, now):
            fields = result.properties.get(CHANGED, "")
            key = (result.rule, result.policy, entry.request.namespace, entry.request.kind.kind, fields)
            self._results.setdefault(key, result)
            self._counts[key] += 1
            names = self._names.setdefault(key, [])
            if len(names) < EXAMPLES and result.object not in names:
                names.append(result.object)

    def report(self, revision: str) -> Report:
        """Returns the report, with results in the order of their first admission."""
        results = tuple(self._counted(key, result) for key, result in self._results.items())
        return Report(results, revision, fates=tuple(self._fates))

    def _counted(self, key: Key, result: Result) -> Result:
        count, names = self._counts[key], self._names[key]
        count_words = f" ({count} admissions, of {listed(names, EXAMPLES)})" if count > 1 else ""
        properties = {**result.properties, "admissions": str(count)}
        return replace(result, message=result.message + count_words, properties=properties)

    def words(self) -> Iterator[str]:
        """Yields lines of text: the number of admissions, and both numbers of each outcome for which they
        differ."""
        if not self.admissions:
            yield "no admission was decided again"
            return
        yield f"{self.admissions} admissions from {_moment(self.first)} to {_moment(self.last)} decided again"
        for name in ("refused", "queued", "changed", "unchanged"):
            if self.was[name] != self.now[name]:
                yield f"{name}: {self.now[name]} where it was {self.was[name]}"


def differences(entry: JournalEntry, now: Answered) -> Iterator[Result]:
    """Yields the differences between the recorded answer of an admission and its replayed answer `now`."""
    was = entry.answer
    blank = Result(
        entry.name, "warn", "policy", PLAN, api_version=entry.request.kind.api_version,
        properties={"uid": entry.request.uid, "time": _moment(entry.time)},
    )  # fmt: skip
    if was.allowed and not now.allowed:
        outcome: Outcome = "fail" if now.mode == "enforce" else "warn"
        yield replace(
            blank, result=outcome, policy=now.policy or "input", rule="NewlyRefused", message=now.message,
            severity="high",
        )  # fmt: skip
    elif now.allowed and not was.allowed:
        message = f"was refused: {was.message}"
        yield replace(blank, policy=was.policy or "input", rule="NewlyAdmitted", message=message)
    elif was.whole and was.allowed:
        yield from _place_differences(blank, was, now)
        yield from _change_differences(blank, was, now)


def _place_differences(blank: Result, was: Answered, now: Answered) -> Iterator[Result]:
    """Yields a result for each gang in both answers that has another decision or place."""
    for gang in (name for name in was.gangs if name in now.gangs):
        before, place_before, _ = was.gangs[gang]
        after, place, _ = now.gangs[gang]
        rule, message = "", ""
        if before != after:
            rule = "NewlyQueued" if after == "queued" else "NewlyPlaced"
            message = f"{gang} was {before} and is {after}{f': {place}' if place else ''}"
        elif place != place_before:
            rule, message = (
                "PlacedElsewhere",
                f"{gang} is in {place or 'no place'}, and was in {place_before}",
            )
        if rule:
            yield replace(blank, source="plan", rule=rule, message=message)


def _change_differences(blank: Result, was: Answered, now: Answered) -> Iterator[Result]:
    """Yields a result for each policy that now sets other fields, or sets a field to another value."""
    for policy in dict.fromkeys((*was.changes, *now.changes)):
        words, fields = changes_differ(was.changes.get(policy, {}), now.changes.get(policy, {}))
        if fields:
            properties = {**blank.properties, CHANGED: ", ".join(fields)[:LONGEST]}
            yield replace(
                blank, policy=policy, rule="ChangedFields", message=words, properties=properties,
                field=fields[0] if len(fields) == 1 else "",
            )  # fmt: skip


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
