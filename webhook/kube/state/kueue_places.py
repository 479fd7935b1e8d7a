"""Reads from a Workload's status to which nodes Kueue's Topology-Aware Scheduling has assigned its pods.
Pure.

The API has two forms: a list of domains, each with its values and count (v1beta1), and slices of domains,
whose values have common parts (v1beta2). Kueue ff69552e, apis/kueue/v1beta1 and v1beta2/workload_types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from planner.manifests.pods.pod import effective_request
from planner.model.errors import Where
from planner.model.reservation import kueue_gang
from planner.model.resources import Resources
from webhook.kube.state.gangs import Ref, finished

Json = Mapping[str, Any]

MOST_DOMAINS = 100_000
"""Maximum number of domains per PodSet, as in Kueue's slices: a status could otherwise state billions by a
count alone.
"""

FINISHED = "Finished"
"""Kueue's condition of a Workload that will start no more pods."""

WAITS_FOR_PODS = "WaitingForReplacementPods"
"""Kueue's condition of a pod group of which some pods have failed, and whose creator has to replace them.
Kueue may even admit a group again that it has just preempted, and whose pods nobody creates again.
"""


@dataclass(frozen=True, slots=True)
class AssignedDomain:
    """The number of pods that are assigned to the nodes with these labels."""

    labels: tuple[tuple[str, str], ...]
    count: int


@dataclass(frozen=True, slots=True)
class AssignedPodSet:
    """One of Kueue's PodSets: the requests of each pod (base units), and where the pods go. `ended`: the
    number of its succeeded pods, whose places Kueue reuses.
    """

    name: str
    requests: Resources
    domains: tuple[AssignedDomain, ...]
    ended: int = 0


@dataclass(frozen=True, slots=True)
class KueuePlace:
    """Where a Workload's pods go. `ref`: the Workload; `owners`: the objects or pods that own it;
    `waits_for_pods`: some of its pods have failed, and Kueue waits for their replacements.
    """

    ref: Ref
    owners: tuple[Ref, ...]
    pod_sets: tuple[AssignedPodSet, ...]
    waits_for_pods: bool = False

    @property
    def gang(self) -> str:
        """The name under which the place is reserved, if no other gang holds it."""
        return kueue_gang(self.ref.namespace, self.ref.name)

    @property
    def pods(self) -> int:
        """The number of assigned pods."""
        return sum(domain.count for part in self.pod_sets for domain in part.domains)

    @property
    def matters(self) -> bool:
        """Whether the place is kept. The place of a single pod without devices is not: it takes no capacity
        that gangs need. Only the resource names of devices contain a slash.
        """
        return self.pods > 1 or any("/" in name for part in self.pod_sets for name in part.requests)


def kueue_place(item: Json, where: Where) -> KueuePlace | None:
    """Returns the place of a stored Workload; None if Kueue has assigned none, the Workload has ended, or the
    place need not be kept (`KueuePlace.matters`).

    Raises `InputError`, `KeyError` or `ValueError` for a malformed status.
    """
    status = item.get("status") or {}
    assignments = (status.get("admission") or {}).get("podSetAssignments") or []
    if not any(part.get("topologyAssignment") for part in assignments) or _has_ended(item):
        return None
    metadata = item["metadata"]
    namespace = str(metadata.get("namespace", ""))
    specs = {str(part["name"]): part["template"].get("spec") or {} for part in item["spec"]["podSets"]}
    ended = {str(part["name"]): int(part["count"]) for part in status.get("reclaimablePods") or []}
    pod_sets = tuple(
        AssignedPodSet(
            name := str(part["name"]),
            effective_request(specs[name], where.below(name)),
            tuple(_domains(part["topologyAssignment"])),
            ended.get(name, 0),
        )
        for part in assignments
        if part.get("topologyAssignment")
    )
    version = "kueue.x-k8s.io/v1beta2"
    ref = Ref(version, "Workload", namespace, metadata["name"], metadata.get("uid", ""))
    owners = tuple(
        Ref(
            str(owner.get("apiVersion", "")),
            str(owner.get("kind", "")),
            namespace,
            str(owner.get("name", "")),
            str(owner.get("uid", "")),
        )
        for owner in metadata.get("ownerReferences") or []
    )
    place = KueuePlace(ref, owners, pod_sets, _holds(item, WAITS_FOR_PODS))
    return place if place.matters else None


def _has_ended(item: Json) -> bool:
    return _holds(item, FINISHED) or finished(item)


def _holds(item: Json, condition: str) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(part.get("type") == condition and part.get("status") == "True" for part in conditions)


def _domains(assignment: Json) -> Iterator[AssignedDomain]:
    levels = [str(level) for level in assignment["levels"]]
    for number, (values, count) in enumerate(chain(_listed(assignment), _sliced(assignment))):
        if number >= MOST_DOMAINS:
            raise ValueError(f"more than {MOST_DOMAINS} domains")
        yield AssignedDomain(tuple(zip(levels, values, strict=True)), count)


def _listed(assignment: Json) -> Iterator[tuple[Sequence[str], int]]:
    for domain in assignment.get("domains") or []:
        yield [str(value) for value in domain["values"]], int(domain["count"])


def _sliced(assignment: Json) -> Iterator[tuple[Sequence[str], int]]:
    for part in assignment.get("slices") or []:
        size = int(part["domainCount"])
        if size > MOST_DOMAINS:
            raise ValueError(f"more than {MOST_DOMAINS} domains")
        columns = [_values(level, size) for level in part["valuesPerLevel"]]
        counts = part["podCounts"]
        universal = counts.get("universal")
        numbers = [int(universal)] * size if universal is not None else list(map(int, counts["individual"]))
        yield from zip(zip(*columns, strict=True), numbers, strict=True)


def _values(level: Json, size: int) -> list[str]:
    """Returns the values of one level, one for each domain of a slice."""
    if level.get("universal") is not None:
        return [str(level["universal"])] * size
    own = level["individual"]
    before, after = str(own.get("prefix") or ""), str(own.get("suffix") or "")
    values = [f"{before}{root}{after}" for root in own["roots"]]
    if len(values) != size:
        raise ValueError(f"{len(values)} values for {size} domains")
    return values
