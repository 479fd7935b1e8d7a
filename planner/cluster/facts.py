"""The facts of an `Infrastructure`: all that it states besides nodes and topologies, by dotted path.

    "settings"         one value
    "claims.claims"    a record for each ResourceClaim, by NAMESPACE/NAME

Some facts have one record for each object of a kind (`RECORDS`). A large cluster has tens of thousands of
claims and volumes, and one of them changes each time a pod starts. So a change of records (`RecordChanges`)
names only what differs, and the changed mapping shares the rest with the former one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, TypeVar

from planner.cluster.infrastructure import Infrastructure
from planner.devices.claims import Claims
from planner.model.priority import PriorityClasses
from planner.model.volumes import Volumes
from planner.node.runtime_class import RuntimeClasses
from planner.persistent.persistent_map import PersistentMap, may_differ

_KEPT = ("topologies", "nodes", "resources_tolerated", "capacities", "plan_cache", "index")
"""Fields of `Infrastructure` that are no facts: the trees and what they are built from, the setting of
`with_stated_settings`, and caches.
"""


_PARTS: Mapping[str, type] = {
    "claims": Claims,
    "volumes": Volumes,
    "priorities": PriorityClasses,
    "runtime_classes": RuntimeClasses,
}
"""Fields of `Infrastructure` whose own fields are the facts."""


def _paths() -> Iterator[str]:
    for row in fields(Infrastructure):
        if row.name in _PARTS:
            yield from (f"{row.name}.{inner.name}" for inner in fields(_PARTS[row.name]))
        elif row.name not in _KEPT:
            yield row.name


FACTS = tuple(_paths())
"""The paths of all facts."""


RECORDS = (
    "numa",
    "bounds",
    "quotas",
    "spaces",
    "claims.claims",
    "claims.templates",
    "claims.domains",
    "claims.classes",
    "volumes.claims",
    "volumes.volumes",
    "volumes.classes",
    "priorities.by_name",
    "runtime_classes.by_name",
)
"""The facts that are mappings with one record for each object."""


VALUES = tuple(path for path in FACTS if path not in RECORDS)
"""The other facts, each with one value."""


RecordChanges = Mapping[str, Mapping[str, object]]
"""By fact, the changed records by key; None stands for a record that is gone."""


K = TypeVar("K")
V = TypeVar("V")


def fact(base: Infrastructure, path: str) -> Any:
    """Returns the value of a fact."""
    return attrgetter(path)(base)


def with_facts(base: Infrastructure, values: Mapping[str, object]) -> Infrastructure:
    """Returns a record with these facts, by path; nothing that was computed from the former one is kept."""
    changed: dict[str, Any] = {}
    for path, value in values.items():
        name, _, inner = path.partition(".")
        part = changed.get(name, getattr(base, name))
        changed[name] = replace(part, **{inner: value}) if inner else value
    return replace(base, **changed)


def with_records(base: Infrastructure, changes: RecordChanges) -> Infrastructure:
    """Returns a record with these changes of records, as `with_facts` does."""
    return with_facts(
        base, {path: changed_map(fact(base, path), records) for path, records in changes.items()}
    )


def changed_map(former: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    """Returns the mapping with these changes; None removes an entry."""
    shared = former if isinstance(former, PersistentMap) else PersistentMap(former)
    return shared.updated(changes)


def differing(former: Mapping[K, V], latest: Mapping[K, V]) -> dict[K, V | None]:
    """Returns the changes from one mapping to another, as `changed_map` takes them."""
    pairs = ((key, former.get(key), latest.get(key)) for key in may_differ(former, latest))
    return {key: now for key, before, now in pairs if differ(before, now)}


def differ(former: object, latest: object) -> bool:
    """Reports whether two values differ; the same object costs no comparison."""
    return former is not latest and former != latest
