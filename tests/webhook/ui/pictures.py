"""Pictures of small clusters, for the tests of the live page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.podgroup import PodGroup
from tests.builders import gang, racks
from tests.webhook.kube.worlds import NOW, booked, work, world
from webhook.kube.gang_standing import ClusterStanding, standings
from webhook.ui.picture import DecisionEntry, HealthLine, Picture, PolicyCounts


def job(name: str, namespace: str = "default") -> PodGroup:
    """A gang of two whole nodes in one rack."""
    return gang(2, name=f"{namespace}/Job/{name}", required="rack")


def in_namespace(group: PodGroup) -> Any:
    """Its Job, in its own namespace."""
    namespace = group.name.partition("/")[0]
    stored = work(group)
    return replace(stored, ref=replace(stored.ref, namespace=namespace))


def picture(snapshot: Snapshot, *waiting: PodGroup, held: tuple[PodGroup, ...] = ()) -> Picture:
    """The cluster in which some gangs hold their places, in this order, and others wait."""
    full = booked(snapshot, *held)
    works = (
        *(in_namespace(group) for group in held),
        *(replace(in_namespace(group), queued=True, created=float(age)) for age, group in enumerate(waiting)),
    )
    standing = ClusterStanding(full, standings(world(full, works=works)), "replica-1", (), NOW)
    return Picture(
        standing,
        "a test",
        tuple(
            DecisionEntry(f"e-{g.name}", NOW, g.name, "Reserved", f"of {g.name}") for g in (*held, *waiting)
        ),
        (PolicyCounts("qos", {"default": {"fail": 2}, "team": {"changed": 1}}),),
        ("abc",),
        (HealthLine("leader", "ok", "replica-1 leads"),),
    )


def two_tenants() -> Picture:
    """Two racks; a gang of `default` and one of `team` hold one each, and one of each waits for both."""
    return picture(racks(2, 2), job("late"), job("later", "team"), held=(job("first"), job("second", "team")))


def texts(value: object) -> list[str]:
    """Every text in a JSON value, keys among them."""
    match value:
        case str():
            return [value]
        case Mapping():
            return [text for key, item in value.items() for text in (*texts(key), *texts(item))]
        case list() | tuple():
            return [text for item in value for text in texts(item)]
    return []
