"""The `Report` and its results, from which every format is written."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from planner.model.names import replicas_of
from planner.model.topology import HOSTNAME
from planner.model.words import counted, listed
from planner.simulation.figures import CourseFigures
from webhook.report.fabric_map import FabricMap
from webhook.report.printable import printable, printable_name
from webhook.report.views import ObjectKey, ObjectView

Outcome = Literal["pass", "fail", "warn", "error", "skip"]
"""The outcome of a result. pass: the object complies; fail: it would be refused; warn: it would be
admitted, but does not comply; error: it could not be evaluated; skip: the rule does not apply to it. Words
and order are those of OpenReports.
"""
Fate = Literal["refused", "queued", "changed", "unchanged"]
"""What would happen to an object: the first of these values that applies to it."""
FATES: tuple[Fate, ...] = get_args(Fate)
Severity = Literal["critical", "high", "medium", "low", "info", ""]
Source = Literal["policy", "plan"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
MUTATION = "mutation"
"""The rule of results that list the changes of a mutating policy."""
EXEMPTION = "exemption"
"""The rule of results for a PolicyException that applies, or would if it had not ended."""
GANGS = "gangs"
"""The property of a result that several gangs of an object share: their number."""
PLACES_TOLD = 4
"""The maximum number of an object's places that are described one by one."""
_NAMES = ("object", "policy", "rule", "file", "field", "api_version")
EACH = "each by itself, as if it alone were applied"
TOGETHER = "together, as one apply in this order"
"""How the objects of a report were evaluated, as words (`Report.judged`)."""
WORST_FIRST: tuple[Outcome, ...] = ("error", "fail", "warn", "pass", "skip")


@dataclass(frozen=True, slots=True)
class Result:
    """What one rule of a policy, or the plan, says about an object.

    `object`: NAMESPACE/KIND/NAME. `api_version`: "" if unknown. `file`, `line` (from 1, 0 if unknown) and
    `field` (a dotted path, "" for the whole object): where a user can change the object. `rule`: the
    validation or mutation of `policy`, or the reason of the planner's answer. `properties`: further facts
    by name. Characters that are unsafe for terminals or XML become U+FFFD.
    """

    object: str
    result: Outcome
    source: Source
    policy: str
    rule: str = ""
    message: str = ""
    file: str = ""
    line: int = 0
    field: str = ""
    severity: Severity = ""
    api_version: str = ""
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", printable(self.message))
        for name in _NAMES:
            object.__setattr__(self, name, printable_name(getattr(self, name)))

    @property
    def title(self) -> str:
        """POLICY/RULE, or POLICY if there is no rule."""
        return f"{self.policy}/{self.rule}" if self.rule else self.policy

    @property
    def place(self) -> str:
        """FILE:LINE, which editors and terminals recognize as a link; "" if there is no file."""
        return f"{self.file}:{self.line}" if self.file and self.line else self.file

    @property
    def reference(self) -> tuple[str, str, str]:
        """The object's namespace ("" if it is cluster-scoped), kind and name. For an unreadable file, only
        the name is set.
        """
        parts = ("", "", *self.object.split("/", 2))
        return parts[-3], parts[-2], parts[-1]


@dataclass(frozen=True, slots=True)
class ObjectResults:
    """An object with its results, the worst first."""

    key: ObjectKey
    results: tuple[Result, ...]

    @property
    def name(self) -> str:
        """The object's NAMESPACE/KIND/NAME."""
        return self.key[0]

    @property
    def worst(self) -> Outcome:
        """The worst outcome of the results, in the order of `WORST_FIRST`."""
        return self.results[0].result

    @property
    def findings(self) -> tuple[Result, ...]:
        """The results that are errors, failures or warnings."""
        return tuple(result for result in self.results if result.result in WORST_FIRST[:3])

    @property
    def places(self) -> tuple[Result, ...]:
        """The plan's results for gangs that are admitted without a warning."""
        return tuple(result for result in self.results if result.source == "plan" and result.result == "pass")

    @property
    def place_words(self) -> tuple[str, ...]:
        """Texts that say where the gangs are placed: the messages of `places`, or if these are more than
        `PLACES_TOLD`, the number of gangs by rack (or other domain around the hosts).
        """
        places = self.places
        if len(places) <= PLACES_TOLD:
            return tuple(result.message for result in places)
        counts: Counter[str] = Counter()
        for properties in (result.properties for result in places):
            domain = properties.get("domain", "")
            around = domain.rpartition("/")[0] if properties.get("level") == HOSTNAME else domain
            counts[around or "the whole cluster"] += int(properties.get(GANGS, 1))
        racks = listed([f"{count} in {domain}" for domain, count in counts.items()])
        return (f"{replicas_of(self.name, counts.total())}, {racks}",)

    @property
    def changed_by(self) -> tuple[str, ...]:
        """The policies that would change the object, without duplicates."""
        return tuple(dict.fromkeys(result.policy for result in self.results if result.rule == MUTATION))


@dataclass(frozen=True, slots=True)
class Report:
    """All results, in the order of the objects, and the data that the formats need in addition.

    `revision`: the revision of the policies. `generated`: the time of the report, None to omit it.
    `fates`: namespace and fate of every object, in the order of the objects. `every`: human-readable
    formats also show results that pass. `judged`: `EACH` or `TOGETHER`, how the objects were evaluated; ""
    if nothing is planned. `courses`: the figures of the courses to compare. `maps` of the cluster and
    `views` of the objects are for the HTML page.
    """

    results: tuple[Result, ...]
    revision: str = ""
    generated: datetime | None = None
    fates: tuple[tuple[str, Fate], ...] = ()
    every: bool = False
    judged: str = ""
    courses: tuple[CourseFigures, ...] = ()
    maps: tuple[FabricMap, ...] = ()
    views: Mapping[ObjectKey, ObjectView] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "revision", printable(self.revision))

    @property
    def summary(self) -> dict[Outcome, int]:
        """The number of results of each outcome, including zeros."""
        return {outcome: sum(r.result == outcome for r in self.results) for outcome in OUTCOMES}

    @property
    def by_policy(self) -> dict[str, dict[Outcome, int]]:
        """The number of results of each outcome, by policy; the planner counts as the policy `plan`. The
        policies with most errors come first, then those with most failures, then those with most warnings.
        """
        counts: dict[str, dict[Outcome, int]] = {}
        for result in self.results:
            row = counts.setdefault(result.policy, dict.fromkeys(OUTCOMES, 0))
            row[result.result] += 1
        by_outcome = sorted(
            counts.items(), key=lambda row: ([-row[1][verdict] for verdict in WORST_FIRST[:3]], row[0])
        )
        return dict(by_outcome)

    @property
    def policies_told(self) -> tuple[dict[str, dict[Outcome, int]], int]:
        """The number of results of each outcome, for each policy with a finding or a change (for all policies
        if `every` is set), in the order of `by_policy`; and the number of policies that are left out.
        """
        counts, changes = self.by_policy, self.changes
        spoken = {
            policy: row
            for policy, row in counts.items()
            if self.every or policy in changes or any(row[verdict] for verdict in WORST_FIRST[:3])
        }
        return spoken, len(counts) - len(spoken)

    @property
    def objects(self) -> dict[Fate, int]:
        """The number of objects with each fate, including zeros."""
        counts = Counter(fate for _, fate in self.fates)
        return {fate: counts[fate] for fate in FATES}

    @property
    def by_namespace(self) -> dict[str, dict[Fate, int]]:
        """The number of objects with each fate by namespace, sorted by name."""
        counts = Counter(self.fates)
        names = sorted({namespace for namespace, _ in self.fates})
        return {name: {fate: counts[name, fate] for fate in FATES} for name in names}

    @property
    def changes(self) -> dict[str, int]:
        """The number of objects that each policy would change, sorted by policy. Policies that change none
        are omitted.
        """
        pairs = {(r.policy, r.object, r.api_version) for r in self.results if r.rule == MUTATION}
        return dict(sorted(Counter(policy for policy, _, _ in pairs).items()))

    @property
    def by_object(self) -> tuple[ObjectResults, ...]:
        """The objects with their results, ordered by their worst outcome, and then by the order of the
        results.

        An object that is in two files counts as two objects.
        """
        grouped: dict[ObjectKey, list[Result]] = {}
        for result in self.worst_first:
            grouped.setdefault((result.object, result.api_version, result.file), []).append(result)
        return tuple(ObjectResults(key, tuple(results)) for key, results in grouped.items())

    @property
    def worst_first(self) -> tuple[Result, ...]:
        """The results ordered by outcome: errors, failures, warnings, passes and skips."""
        return tuple(sorted(self.results, key=lambda result: WORST_FIRST.index(result.result)))

    def fate_of_all(self) -> str:
        """Returns the fates in words: `of 300 objects 12 refused, 3 queued, 285 unchanged`."""
        counts = self.objects
        fates_words = ", ".join(f"{counts[fate]} {fate}" for fate in FATES if counts[fate])
        return f"of {counted(len(self.fates), 'object')} {fates_words}" if fates_words else "no object"

    def headline(self) -> str:
        """Returns the summary in words: `2 fail, 1 warn, 12 pass`."""
        counts = self.summary
        return ", ".join(f"{counts[outcome]} {outcome}" for outcome in WORST_FIRST if counts[outcome]) or (
            "nothing to report"
        )
