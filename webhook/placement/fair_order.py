"""Orders the queue: by priority, then fairly over namespaces, then by age. Pure.

    namespace research has 48 of 96 GPUs   its gang train (16 GPUs) was applied at 9:00: it would have 64
    namespace inference has 8              its gang serve (1 GPU) was applied at 12:00: it would have 9

The share of a gang is what its namespace would have with the gang, and with the namespace's own gangs before
it, of the GPUs that the gang's pods may use: 64/96 for train, 9/96 for serve. The gang counts as applied
later, by its share times `fair_seconds`. If that is a day, train counts from 9:00 + 16 h, and serve from
12:00 + 2:15 h, so serve goes first. Three rules follow:

- Of two gangs that are applied at the same time, the first is the one whose namespace would have less,
  divided by the namespace's weight, as in dominant resource fairness (Ghodsi et al. 2011; Kueue also compares
  what a namespace would have with the workload).
- Of two gangs of one namespace that may use the same nodes, the older is first, whatever its size. A
  namespace gains nothing from many gangs.
- No gang waits without limit. No gang that is applied `fair_seconds` later goes before a gang with a share of
  at most 1. For a gang with a share s above 1, this holds for gangs that are applied s times `fair_seconds`
  later. The order of two gangs does not depend on the current time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from planner.cluster.census.namespaces import Kinds, contested_gpus, gpus_of_namespaces
from planner.cluster.snapshot import Snapshot
from planner.model.effort.deadline import poll
from planner.model.names import namespace_of
from planner.model.podgroup import PodGroup
from planner.model.priority import priority_of

FAIR_SECONDS = 86_400.0
"""The default of `fair_seconds`: by how many seconds a gang with a share of 1 counts as applied later. It is
a day because most gangs run for hours to days.
"""


def equal_weights(namespace: str) -> float:
    """Returns the same weight for every namespace."""
    return 1.0


@dataclass(frozen=True, slots=True)
class QueueRules:
    """Settings of the order.

    `now`: the time at which a new gang is applied, in seconds since the epoch; without a clock it is
    infinite, which puts the gang last. `fair_seconds`: see above. `weight`: returns the weight of a
    namespace, above 0.
    """

    now: float = math.inf
    fair_seconds: float = FAIR_SECONDS
    weight: Callable[[str], float] = equal_weights


NO_RULES = QueueRules()


@dataclass(frozen=True, slots=True)
class WaitingGang:
    """A gang that waits for a place. `created`: the start of its wait, seconds since the epoch."""

    group: PodGroup
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """The position of a gang in the queue.

    `with_it`: the GPUs that its namespace would have with the gang and the namespace's own gangs before it,
    of the `total` GPUs that the gang may use. `share`: `with_it / total`, divided by the namespace's weight;
    0 if `total` is 0. `counts_from`: the time from which the gang counts as waiting, in seconds since the
    epoch.
    """

    gang: WaitingGang
    priority: int
    with_it: int
    total: int
    share: float
    counts_from: float

    @property
    def key(self) -> tuple[int, float, float, str]:
        """The sort key of the queue; a total order."""
        return -self.priority, self.counts_from, self.gang.created, self.gang.group.name

    @property
    def namespace(self) -> str:
        """The gang's namespace."""
        return namespace_of(self.gang.group.name)

    @property
    def would_have(self) -> str:
        """What the namespace would have with the gang, as text: `64 of 96 GPUs`."""
        return f"{self.with_it} of {self.total} GPUs"


def in_order(
    snapshot: Snapshot, waiting: Iterable[WaitingGang], rules: QueueRules = NO_RULES
) -> list[QueuePlace]:
    """Returns the positions of these gangs in the order of the queue, with the numbers that decide it."""
    classes = snapshot.base.priorities
    ranked = [(priority_of(classes, gang.group), gang) for gang in waiting]
    ranked.sort(key=lambda pair: (-pair[0], pair[1].created, pair[1].group.name))
    # GPUs of the gangs so far, by namespace and by the kinds of nodes that the gangs may use
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
    """Returns text that says why `first` is before `second` in the queue, with the numbers that decide it."""
    if first.priority != second.priority:
        return f"priority {first.priority}, this one {second.priority}"
    if first.share == second.share or first.namespace == second.namespace:
        return "applied before"
    shares = (
        f"{first.namespace} would have {first.would_have} with it, "
        f"{second.namespace} {second.would_have} with this one"
    )
    return shares if first.share < second.share else f"applied long before, though {shares}"
