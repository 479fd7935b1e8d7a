"""Merges decisions into the resource `Report` (openreports.io) of a namespace in a cluster. Pure.

Each namespace has one such Report, named `bayplan`, with the newest results of each object. If it becomes
too large, the oldest results are removed. Several replicas of the webhook write it, so each merges its
decisions into the stored Report. (The class `model.Report` is not used here.)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

import orjson

from planner.model.names import namespace_of
from planner.model.words import shortened
from webhook.admission.decision_record import Decision
from webhook.report.collect import Subject, results
from webhook.report.model import EXEMPTION, MUTATION, OUTCOMES, Result
from webhook.report.openreports import API_VERSION, LABELS, result_entry

Json: TypeAlias = dict[str, Any]

NAME = "bayplan"
"""The name of the Report in each namespace."""
LARGEST_COUNT, LARGEST_BYTES = 1000, 900_000
"""The maximum number of results in a Report, and their maximum total size as JSON in bytes: etcd limits an
object to 1.5 MiB.
"""
LONGEST = 500
"""The maximum number of characters of a message or property. The whole text is in the audit log and in
`bayplan report`.
"""
SETTLED_SECONDS = 30.0
"""Seconds for which the results of an object are kept although no watch has reported the object: watches lag
behind the decision.
"""
REFUSED_SECONDS = 86_400.0
"""Seconds for which a refusal is kept although its object does not exist."""
_OF_PODS = "told-by"
"""The property, with the value `_PODS`, of a result that is not of the object, but of a pod it created."""
_PODS = "its pods"


@dataclass(frozen=True, slots=True)
class DecisionNews:
    """The results of one decision on an object (NAMESPACE/KIND/NAME), as entries of a Report.

    `anew`: the whole object was evaluated, so all earlier results of it are replaced. `by_pods`: the
    results are of pods that the object created; they are dropped if the Report has results of the object
    itself. `gone`: the object was deleted, so its results are removed.
    """

    object: str
    entries: tuple[Json, ...] = ()
    anew: bool = True
    by_pods: bool = False
    gone: bool = False

    @property
    def namespace(self) -> str:
        """The namespace of the object."""
        return namespace_of(self.object)


def decision_news(
    name: str, api_version: str, decision: Decision, now: float, *, anew: bool = True, pods_of: str = ""
) -> DecisionNews:
    """Returns the results of a decision for the Report.

    `now`: seconds since the epoch. `anew`: see `DecisionNews`. `pods_of`: for a pod, the name of the object
    that created it, under which its results are kept; "" for other objects. Passes and skips are left out,
    apart from changes, exemptions and (unless `pods_of`) the plan's, because a Report shows effects only.
    """
    moment = datetime.fromtimestamp(now, UTC)
    shown = pods_of or name

    def is_reported(result: Result) -> bool:
        return (
            result.result in ("fail", "warn", "error")
            or result.rule in (MUTATION, EXEMPTION)
            or (result.source == "plan" and not pods_of)
        )

    entries = [
        _entry(replace(result, object=shown, api_version="" if pods_of else api_version), moment, pods_of)
        for result in results([Subject(name, api_version, "", 0, "", decision)], is_reported)
    ]
    if not decision.response.allowed:
        entries = [
            {**entry, "properties": {**entry.get("properties", {}), "refused": "true"}} for entry in entries
        ]
    return DecisionNews(shown, tuple(entries), anew and not pods_of, bool(pods_of))


def _entry(result: Result, moment: datetime, pods_of: str) -> Json:
    properties = {key: _cut(value) for key, value in result.properties.items()}
    if pods_of:
        properties[_OF_PODS] = _PODS
    return result_entry(replace(result, message=_cut(result.message), properties=properties), moment)


def _cut(text: str) -> str:
    return shortened(text, LONGEST)


def merged(document: Json | None, namespace: str, news: Iterable[DecisionNews], revision: str) -> Json | None:
    """Returns the Report with the decisions merged into it; `document` itself if nothing changes.

    `document`: the stored Report, None if there is none. `revision`: the revision of the policies.
    """
    before: list[Json] = list((document or {}).get("results") or ())
    entries = _with(before, news)
    if entries == before:
        return document
    kept = _bounded(entries)
    counts = Counter(str(entry.get("result")) for entry in kept)
    metadata = dict((document or {}).get("metadata") or {"name": NAME, "namespace": namespace})
    metadata["labels"] = {**(metadata.get("labels") or {}), **LABELS}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), "bayplan.dev/revision": revision}
    return {
        "apiVersion": API_VERSION,
        "kind": "Report",
        "metadata": metadata,
        "source": "bayplan",
        "configuration": {"limits": {"maxResults": LARGEST_COUNT}},
        "summary": {outcome: counts[outcome] for outcome in OUTCOMES},
        "results": kept,
    }


def _with(before: Sequence[Json], news: Iterable[DecisionNews]) -> list[Json]:
    """Returns the entries of the news, the latest first, and then the older entries that they do not replace.

    Entries get numbers in this order (those of the news below 0) and are indexed by object, so that the time
    does not grow with the product of news and entries.
    """
    entries = dict(enumerate(before))
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, entry in entries.items():
        numbers[_object_name(entry)].append(number)
    first = 0
    for news_item in news:
        own = [number for number in numbers[news_item.object] if number in entries]
        if news_item.by_pods and any(_OF_PODS not in entries[number].get("properties", {}) for number in own):
            continue
        rules = {_rule(entry) for entry in news_item.entries}
        for number in own:
            if news_item.gone or news_item.anew or _rule(entries[number]) in rules:
                del entries[number]
        first -= len(news_item.entries)
        for number, entry in enumerate(news_item.entries, first):
            entries[number] = entry
            numbers[_object_name(entry)].append(number)
    return [entries[number] for number in sorted(entries)]


def _bounded(entries: list[Json]) -> list[Json]:
    """Returns the newest entries, up to `LARGEST_COUNT` entries and `LARGEST_BYTES` bytes."""
    newest = sorted(entries, key=_seconds, reverse=True)[:LARGEST_COUNT]
    size = 0
    for index, entry in enumerate(newest):
        size += len(orjson.dumps(entry)) + 1
        if size > LARGEST_BYTES:
            return newest[:index]
    return newest


def objects_in(document: Json) -> dict[str, float]:
    """Returns, for each object in a Report, the time (seconds since the epoch) after which its results are
    removed if the object does not exist.
    """
    expiry: dict[str, float] = {}
    for entry in document.get("results") or ():
        patience = REFUSED_SECONDS if "refused" in entry.get("properties", {}) else SETTLED_SECONDS
        name = _object_name(entry)
        expiry[name] = max(expiry.get(name, 0.0), _seconds(entry) + patience)
    return expiry


def exemptions_in(document: Mapping[str, Any], name: str) -> tuple[dict[str, str], ...]:
    """Returns the exceptions in a Report that apply to the object NAMESPACE/KIND/NAME, one row for each
    policy: `policy`, `exception` (name of the PolicyException), `until` and `message`.
    """
    entries = [entry for entry in document.get("results") or () if isinstance(entry, Mapping)]
    return tuple(
        {
            "policy": str(entry.get("policy", "")),
            **{key: str((entry.get("properties") or {}).get(key, "")) for key in ("exception", "until")},
            "message": str(entry.get("message", "")),
        }
        for entry in entries
        if entry.get("rule") == EXEMPTION and _object_name(entry) == name
    )


def _object_name(entry: Mapping[str, Any]) -> str:
    """Returns the object of an entry as NAMESPACE/KIND/NAME."""
    resource: Mapping[str, Any] = next(iter(entry.get("resources") or ()), {})
    return "/".join(str(resource.get(key, "")) for key in ("namespace", "kind", "name"))


def _rule(entry: Mapping[str, Any]) -> tuple[str, str]:
    return str(entry.get("policy", "")), str(entry.get("rule", ""))


def _seconds(entry: Mapping[str, Any]) -> float:
    moment = entry.get("timestamp") or {}
    return float(moment.get("seconds", 0)) + float(moment.get("nanos", 0)) / 1e9
