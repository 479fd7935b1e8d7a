"""How large an object may be, told before anything is read of it. Pure.

A pod of 800 kB with ten thousand containers took a thread for 48 s, one of 2 MB with eighty thousand resource
names took 750 MB: what policies and plan work out grows faster than such a list. So lists and mappings have
bounds that are far above what people write, and low enough that each decision is short. Only of what is new:
an object that was as large before passes as it is, unplanned, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from planner.model.deadline import poll
from planner.model.errors import InputError, Where
from planner.model.words import shortened
from webhook.wire.request import AdmissionRequest
from webhook.workloads.kinds import KINDS

MOST_ENTRIES = 1_000
"""Of a list or mapping in metadata and spec of a workload."""


MOST_BY_NAME = {
    "containers": 100,
    "initContainers": 100,
    "ephemeralContainers": 100,
    "limits": 64,
    "requests": 64,
    "topologySpreadConstraints": 64,
    "values": 5_000,
}
"""Of lists and mappings by their field. Each container is mended by each policy, each resource and constraint
is looked for on each node; one requirement may name as many nodes as Kubernetes supports."""


MOST_PARTS = 100_000
"""Lists and mappings in one object: 512 PodSets of 190 each."""


def left_alone(request: AdmissionRequest) -> str:
    """The warning where the object is as large as it was before, and passes; "" where it is looked at.

    Raises `InputError`, with bound and number, for a workload that has become too large.
    """
    problem = _problem(request, request.object)
    if not problem:
        return ""
    if _problem(request, request.old_object):
        return f"{problem}. It was as large before: policies and plan leave it as it is"
    own = (request.object or {}).get("metadata")
    name = request.name or (own.get("generateName") if isinstance(own, dict) else "")
    raise InputError(
        problem, Where(object=f"{request.namespace}/{request.kind.kind}/{shortened(str(name), 63)}")
    )


def _problem(request: AdmissionRequest, obj: Mapping[str, Any] | None) -> str:
    """What there is too much of in a workload; "" where it may be looked at."""
    if obj is None or (request.kind.group, request.kind.kind) not in KINDS:
        return ""
    root = {name: part for name in ("metadata", "spec") if isinstance(part := obj.get(name), dict)}
    if "metadata" in root:  # nobody walks managedFields, in which a list of 1,000 entries is a map of 1,001
        root["metadata"] = {key: part for key, part in root["metadata"].items() if key != "managedFields"}
    return next(_problems(root), "")


@dataclass(frozen=True, slots=True)
class _Part:
    """A list or mapping, its key or index, and the one that it is in. A path is put together for a message
    alone: names may be as long as the whole object."""

    value: Mapping[str, Any] | list[Any]
    key: str | int = ""
    parent: _Part | None = None

    def path(self) -> str:
        above = self.parent.path() if self.parent is not None else ""
        if isinstance(self.key, int):
            return f"{above}[{self.key}]"
        key = shortened(self.key, 63)
        return f"{above}.{key}" if above else key

    def below(self) -> Iterator[_Part]:
        entries = self.value.items() if isinstance(self.value, Mapping) else enumerate(self.value)
        return (_Part(value, key, self) for key, value in entries if isinstance(value, (dict, list)))


def _problems(root: Mapping[str, Any]) -> Iterator[str]:
    waiting = [_Part(root)]
    for parts in count():
        if not waiting:
            return
        poll("reading")
        part = waiting.pop()
        limit = MOST_BY_NAME.get(part.key, MOST_ENTRIES) if isinstance(part.key, str) else MOST_ENTRIES
        if len(part.value) > limit:
            yield (
                f"{part.path()} has {len(part.value)} entries; at most {limit} are planned. "
                "What would work: fewer of them, or several objects"
            )
        if parts > MOST_PARTS:
            yield (
                f"has more than {MOST_PARTS} lists and mappings; at most so many are planned. "
                "What would work: several objects"
            )
        waiting.extend(part.below())
