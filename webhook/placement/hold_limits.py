"""Limits how many GPUs the gangs of one namespace may hold, by its ResourceQuota and the parameters. Pure.

Held GPUs are those that no other gang can get: all GPUs of the nodes in domains that a gang holds whole,
otherwise the GPUs of its pods. If a gang would exceed the limit by holding whole domains, which its author
did not request, it holds only what it uses, provided that this is within the limit. Otherwise the gang waits
until other gangs of its namespace end; it holds nothing, and no place is kept for it. A gang that exceeds the
limit alone waits until the limit is raised, and its message says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.names import namespace_of
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.model.resources import GPU_RESOURCES, WHOLE_GPUS

HOLD_LIMIT = "HoldLimit"
"""The answer's reason for a gang that waits because of its namespace's limit."""


@dataclass(frozen=True, slots=True)
class HoldLimits:
    """The limits of a namespace from the parameters; None for no limit. `gpus`: the maximum number of GPUs
    that its gangs may hold. `per_used`: the maximum number of held GPUs per GPU that their pods use."""

    gpus: int | None = None
    per_used: float | None = None


NO_LIMITS = HoldLimits()

Limits = Callable[[str], HoldLimits]
"""Returns the limits of a namespace."""


def no_limits(namespace: str) -> HoldLimits:
    """Returns no limits, for a namespace without parameters."""
    return NO_LIMITS


@dataclass(frozen=True, slots=True)
class _Holding:
    """Numbers of GPUs by resource name: those that gangs hold, and those that their pods use."""

    held: Mapping[str, int]
    used: Mapping[str, int]


def over_limit(snapshot: Snapshot, wanted: Reservation, limits: HoldLimits) -> str:
    """Returns text, with the numbers, that says why a namespace may not hold `wanted` in addition to its
    other reservations; "" if it may.

    Earlier reservations of the same gang are not counted as held."""
    namespace = namespace_of(wanted.gang)
    quotas = list(_quotas(snapshot, namespace))
    if not quotas and limits.gpus is None and limits.per_used is None:
        return ""
    others = [r for r in snapshot.reservations if r.gang != wanted.gang and namespace_of(r.gang) == namespace]
    now, asked = _total(_holding(snapshot, r) for r in others), _holding(snapshot, wanted)
    broken = [
        f"{size} {name} by {source}, {_sums(now.held[name], asked.held[name])}"
        for source, name, size in quotas
        if asked.held.get(name, 0) and now.held.get(name, 0) + asked.held[name] > size
    ]
    held, added, used = (sum(c.values()) for c in (now.held, asked.held, asked.used))
    if limits.gpus is not None and held + added > limits.gpus:
        broken.append(f"{limits.gpus} GPUs by parameter holds.gpus, {_sums(held, added)}")
    in_use = sum(now.used.values()) + used
    if limits.per_used is not None and held + added > limits.per_used * in_use:
        broken.append(
            f"{limits.per_used:g} GPUs for each one in use by parameter holds.per-used, and would hold "
            f"{held + added} of which its gangs use {in_use}"
        )
    return f"namespace {namespace} may hold {broken[0]}" if broken else ""


def within_limits(
    snapshot: Snapshot,
    group: PodGroup,
    answer: Answer,
    limits: HoldLimits,
    place: Callable[[Snapshot, PodGroup], tuple[Answer, Reservation | None]],
    wanted: Reservation | None,
) -> tuple[Answer, Reservation | None]:
    """Returns the answer for a gang, and the reservation that it gets within the limits of its namespace.

    `wanted`: the reservation without limits; None for none. `place`: plans a gang, and returns its answer and
    reservation; called for the gang as it would be if it held only the nodes that it uses."""
    if wanted is None or answer.replayed:
        return answer, wanted
    why = over_limit(snapshot, wanted, limits)
    if not why:
        return answer, wanted
    smallest = wanted
    if wanted.mode == "domain" and (group.reserve_is_default or group.reserve == "auto"):
        smaller, held = place(snapshot, replace(group, reserve="nodes"))
        if held is not None and not over_limit(snapshot, held, limits):
            note = f"holds only what it uses: {why}"
            return replace(smaller, warnings=(*smaller.warnings, note)), held
        smallest = held or wanted
    if alone := _over_alone(snapshot, smallest, limits):
        message = (
            f"{alone} by itself. It cannot run while that is so, whichever gangs end: {_remedies(smallest)}"
        )
    else:
        message = f"{why}. It waits until gangs of its namespace have ended"
    queued = Answer(group.name, "queued", reason=HOLD_LIMIT, message=message, warnings=answer.warnings)
    return queued, None


def _over_alone(snapshot: Snapshot, wanted: Reservation, limits: HoldLimits) -> str:
    """Returns text, with the numbers, that says why even a namespace that holds nothing else may not hold
    `wanted`; "" if it may.

    The limit `per_used` is not checked, because GPUs that other gangs use count towards it."""
    namespace, asked = namespace_of(wanted.gang), _holding(snapshot, wanted).held
    own = ((limits.gpus, "GPUs by parameter holds.gpus", sum(asked.values())),)
    quotas = (
        (size, f"{name} by {source}", asked.get(name, 0))
        for source, name, size in _quotas(snapshot, namespace)
    )
    return next(
        (
            f"namespace {namespace} may hold {size} {words}, and this would hold {amount}"
            for size, words, amount in (*quotas, *own)
            if size is not None and amount > size
        ),
        "",
    )


def _remedies(held: Reservation) -> str:
    """Returns text that says what would work for a gang that exceeds its namespace's limit alone."""
    less = "hold only what it uses (bayplan.dev/reserve: nodes), " if held.mode == "domain" else ""
    return f"{less}ask for fewer GPUs, or have the limit raised; it waits for that"


def _sums(held: int, added: int) -> str:
    return f"holds {held}, and would hold {added} more"


def _quotas(snapshot: Snapshot, namespace: str) -> Iterator[tuple[str, str, int]]:
    """Yields the limits of GPUs in a namespace's ResourceQuotas: text for the quota, the resource, and the
    hard limit."""
    for key, quota in snapshot.base.quotas.items():
        if key.startswith(f"{namespace}/"):
            for name in GPU_RESOURCES:
                if (size := quota.hard.get(f"requests.{name}", quota.hard.get(name))) is not None:
                    yield f"ResourceQuota {quota.name}", name, size


def _holding(snapshot: Snapshot, reservation: Reservation) -> _Holding:
    per_pod = dict(reservation.requests)
    used: Counter[str] = Counter()
    for assignment in reservation.assignments:
        for name, amount in per_pod.get(assignment.pod_set, {}).items():
            if name in WHOLE_GPUS:
                used[name] += amount * assignment.count
    if reservation.mode != "domain":
        return _Holding(used, used)
    held: Counter[str] = Counter()
    for node in (snapshot.nodes[name] for name in reservation.nodes if name in snapshot.nodes):
        held.update({name: amount for name, amount in node.allocatable.items() if name in GPU_RESOURCES})
    return _Holding(held, used)


def _total(holdings: Iterable[_Holding]) -> _Holding:
    held: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for holding in holdings:
        held.update(holding.held)
        used.update(holding.used)
    return _Holding(held, used)
