"""Limits the size of an object, before it is read. Pure.

The work of policies and plan grows faster than the lists of an object: a pod of 800 kB with ten thousand
containers took 48 s of CPU, and a pod of 2 MB with eighty thousand resource names took 750 MB of memory. The
bounds are far above real workloads, and low enough that each decision is short. An update of an object that
exceeded a bound before is admitted unchanged and unplanned, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from planner.model.effort.deadline import poll
from planner.model.errors import InputError, Where
from planner.model.words import shortened
from webhook.wire.request import AdmissionRequest
from webhook.workloads.kinds import KINDS

MOST_ENTRIES = 1_000
"""Maximum number of entries of a list or mapping in the metadata or spec of a workload."""


MOST_BY_NAME = {
    "containers": 100,
    "initContainers": 100,
    "ephemeralContainers": 100,
    "limits": 64,
    "requests": 64,
    "topologySpreadConstraints": 64,
    "values": 5_000,
}
"""Maximum number of entries of fields with these names. Containers, resources and constraints are limited
because each policy runs on each container, and each resource and constraint is looked up on each node.
`values`: one requirement may name as many nodes as Kubernetes supports."""


LONGEST_WORD = 1_000
"""Maximum length in characters of the texts in the fields `_WORDS` and `_NAMES`; Kubernetes allows 317. Each
of them is looked up on nodes, compared with similar ones and kept in caches.
"""


_WORDS = frozenset(("annotations", "labels", "limits", "matchLabels", "nodeSelector", "requests", "values"))
"""Lists and mappings of texts that users invent. The texts of annotations may be long, their keys may not."""


_NAMES = ("key", "name", "topologyKey")
"""Fields of one such text. The name of the object itself is checked where it is read."""


MOST_PARTS = 100_000
"""Maximum number of lists and mappings in one object: enough for 512 PodSets with 190 each."""


def too_large_before(request: AdmissionRequest) -> str:
    """Returns the warning for a workload that exceeded a bound before the update too, and is therefore
    admitted unchanged; "" for an object within the bounds.

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
    """Returns text that names the bound that a workload exceeds; "" for none."""
    if obj is None or (request.kind.group, request.kind.kind) not in KINDS:
        return ""
    root = {name: part for name in ("metadata", "spec") if isinstance(part := obj.get(name), dict)}
    if "metadata" in root:  # managedFields is not read; for a list of 1,000 entries it has 1,001
        root["metadata"] = {key: part for key, part in root["metadata"].items() if key != "managedFields"}
    return next(_problems(root), "")


@dataclass(frozen=True, slots=True)
class _JsonPart:
    """A list or mapping, its key or index, and its parent. The path is built only for a message, because
    names may be as long as the whole object.
    """

    value: Mapping[str, Any] | list[Any]
    key: str | int = ""
    parent: _JsonPart | None = None

    def path(self) -> str:
        above = self.parent.path() if self.parent is not None else ""
        if isinstance(self.key, int):
            return f"{above}[{self.key}]"
        key = shortened(self.key, 63)
        return f"{above}.{key}" if above else key

    def below(self) -> Iterator[_JsonPart]:
        entries = self.value.items() if isinstance(self.value, Mapping) else enumerate(self.value)
        return (_JsonPart(value, key, self) for key, value in entries if isinstance(value, (dict, list)))

    def longest_word(self) -> int:
        """Returns the length of the longest of the part's texts that `LONGEST_WORD` limits, 0 for none."""
        value, words = self.value, []
        if isinstance(value, Mapping) and self.key != "metadata":
            words = [value.get(name) for name in _NAMES]
        if self.key in _WORDS:
            words += value
            words += value.values() if isinstance(value, Mapping) and self.key != "annotations" else ()
        return max((len(word) for word in words if isinstance(word, str)), default=0)


def _problems(root: Mapping[str, Any]) -> Iterator[str]:
    waiting = [_JsonPart(root)]
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
        if (length := part.longest_word()) > LONGEST_WORD:
            yield (
                f"{part.path()} has a name of {length} characters; at most {LONGEST_WORD} are planned. "
                "What would work: a shorter one"
            )
        if parts > MOST_PARTS:
            yield (
                f"has more than {MOST_PARTS} lists and mappings; at most so many are planned. "
                "What would work: several objects"
            )
        waiting.extend(part.below())
