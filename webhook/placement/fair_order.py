"""The order of the queue: by priority, then fairly over namespaces, then by age. Pure.

    research has 48 of 96 GPUs           train (16 GPUs) waits since 9:00: research would have 64
    inference has 8                      serve (1 GPU) comes at 12:00: inference would have 9

What a gang's namespace would have with it (and with the namespace's own gangs that stand before it), of the
GPUs that the gang's pods may use, is its share: 64/96 for train, 9/96 for serve. A gang counts as applied
later by its share of `fair_seconds`: with a day train counts from 16 h after 9:00, serve from 2:15 h after
12:00, so that serve goes first. Three rules follow:

- Of two gangs that are applied together the one goes first whose namespace would have less, divided by its
  weight, as dominant resource fairness has it (Ghodsi et al. 2011; Kueue compares what a namespace would have
  with the workload, too).
- Among the gangs of one namespace that may use the same nodes the older goes first, however large it is; many
  gangs gain a namespace nothing.
- No gang waits without limit: one whose share is at most 1 is passed by none that is applied `fair_seconds`
  later, and one of a greater share by none that is applied that many times later. The order of two gangs does
  not depend on the time at which somebody looks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from planner.cluster.census.namespaces import Kinds, contested_gpus, gpus_of_namespaces
from planner.cluster.snapshot import Snapshot
from planner.model.deadline import poll
from planner.model.names import namespace_of
from planner.model.podgroup import PodGroup
from planner.model.priority import priority_of

FAIR_SECONDS = 86_400.0
"""By how many seconds a share of 1 counts as applied later, unless parameters say otherwise: a day, as most
gangs run for hours to days."""


def equal_weights(namespace: str) -> float:
    """Every namespace may have as much as every other."""
    return 1.0


@dataclass(frozen=True, slots=True)
class QueueRules:
    """What the order depends on beside the cluster. `now`: seconds since the epoch, when a newcomer is
    applied; without a clock it comes last. `weight`: by namespace, above 0."""

    now: float = math.inf
    fair_seconds: float = FAIR_SECONDS
    weight: Callable[[str], float] = equal_weights


NO_RULES = QueueRules()


@dataclass(frozen=True, slots=True)
class WaitingGang:
    """A gang that waits for a place. `created`: since when, seconds since the epoch."""

    group: PodGroup
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Where a gang stands. `with_it`: GPUs that its namespace would have with the gang and its own gangs
    before it, of `total` that the gang may use; `share`: that by the namespace's weight. `counts_from`: since
    when the gang counts as waiting, seconds since the epoch.
    """

    gang: WaitingGang
    priority: int
    with_it: int
    total: int
    share: float
    counts_from: float

    @property
    def key(self) -> tuple[int, float, float, str]:
        """The order of the queue; a total one."""
        return -self.priority, self.counts_from, self.gang.created, self.gang.group.name

    @property
    def namespace(self) -> str:
        """The gang's."""
        return namespace_of(self.gang.group.name)

    @property
    def would_have(self) -> str:
        """What its namespace would have with it, in words."""
        return f"{self.with_it} of {self.total} GPUs"


def in_order(
    snapshot: Snapshot, waiting: Iterable[WaitingGang], rules: QueueRules = NO_RULES
) -> list[QueuePlace]:
    """The queue in its order, with the reasons for it."""
    classes = snapshot.base.priorities
    ranked = [(priority_of(classes, gang.group), gang) for gang in waiting]
    ranked.sort(key=lambda pair: (-pair[0], pair[1].created, pair[1].group.name))
    before: Counter[tuple[str, Kinds]] = Counter()
    held: dict[Kinds, Mapping[str, int]] = {}
    places = []
    for priority, gang in ranked:
        poll("search")
        namespace, contested = namespace_of(gang.group.name), contested_gpus(snapshot, gang.group)
        if contested.kinds not in held:
            held[contested.kinds] = gpus_of_namespaces(snapshot, contested)
        before[namespace, contested.kinds] += gang.group.gpus
        with_it = held[contested.kinds].get(namespace, 0) + before[namespace, contested.kinds]
        share = with_it / contested.total / rules.weight(namespace) if contested.total else 0.0
        counts_from = gang.created + share * rules.fair_seconds
        places.append(QueuePlace(gang, priority, with_it, contested.total, share, counts_from))
    return sorted(places, key=lambda place: place.key)


def why_before(first: QueuePlace, second: QueuePlace) -> str:
    """Why one gang goes before another, with the numbers that decide."""
    if first.priority != second.priority:
        return f"priority {first.priority}, this one {second.priority}"
    if first.share == second.share or first.namespace == second.namespace:
        return "applied before"
    shares = (
        f"{first.namespace} would have {first.would_have} with it, "
        f"{second.namespace} {second.would_have} with this one"
    )
    return shares if first.share < second.share else f"applied long before, though {shares}"
