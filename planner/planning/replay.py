"""Replays the plan of a gang that holds a reservation, if the request is the same and the plan is still
valid.

The mutating webhook writes the plan into the object: node affinity, a preferred level, a topology's name. The
constraints of the same gang are therefore different when it is planned again. So two requests count as the
same if their pods are the same, and the plan counts as valid if it satisfies the current constraints. The
overhead of a RuntimeClass belongs to the cluster, not to the request: after it has grown, a plan is valid
only if the pods that are still to be bound fit with it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.devices.pools import is_claimed
from planner.model.answer import Answer
from planner.model.claim_spec import is_claim_spec
from planner.model.podgroup import PodGroup, PodSet
from planner.model.reservation import Reservation
from planner.model.resolved import ResolvedPodGroup, resolved_group
from planner.model.topology import ROOT, Domain, Topology, topology_named
from planner.model.words import counted
from planner.node.eligibility import permits
from planner.request.created_pods import as_admitted, as_created
from planner.request.levels import level_key
from planner.request.topology_choice import candidates
from planner.request.topology_request import topology_request
from planner.request.validation import Refusal
from planner.request.volumes import with_volumes


def fingerprint(group: PodGroup) -> str:
    """Returns a digest of the request: the PodSets with their pods' requests and slices, what the gang asks
    for beyond constraints (`PodGroup.has_special_requests`), and the stated reserve mode.

    A default reserve mode is left out, so a running gang keeps its place when the default changes. Levels,
    node selectors and affinity are left out, because the mutating webhook adds the plan to them; `replay`
    checks instead that the placement satisfies them.
    """
    asked: dict[str, object] = {
        "podSets": [
            [p.name, p.count, _requests(p), *_slices(group, p)]
            for p in sorted(group.pod_sets, key=lambda p: p.name)
        ],
        "reserve": "" if group.reserve_is_default else group.reserve,
    }
    if group.has_special_requests:
        wish = group.fabric
        fabric = [wish.domain, wish.gbps, wish.strategy, wish.latency] if wish else []
        asked["wishes"] = [
            fabric,
            group.policy,
            group.balanced,
            [[p.name, p.max_count] for p in group.pod_sets],
        ]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]


def _requests(pod_set: PodSet) -> list[tuple[str, object]]:
    """Returns the pods' requests without what depends on the cluster: ResourceClaims are listed only by name,
    and the overhead of a RuntimeClass is left out.
    """
    shape = pod_set.shape
    amounts = sorted(shape.requests_without_overhead.items())
    asked: list[tuple[str, object]] = [
        (n, a) for n, a in amounts if not is_claimed(n) and not is_claim_spec(n)
    ]
    return asked + [("claim", [use.source, use.template]) for use in shape.claims]


def _slices(group: PodGroup, pod_set: PodSet) -> list[str | int]:
    asked = pod_set.constraint if pod_set.constraint.slice_level else group.constraint
    return [asked.slice_level, asked.slice_size]


def replay(snapshot: Snapshot, group: PodGroup, reservation: Reservation) -> Answer | None:
    """Returns the admitted answer with the place that the gang already holds by `reservation`.

    Returns None if the request differs from the one for which the place was reserved, if the place does not
    satisfy the current constraints, or if its pods no longer fit there with the current overhead of their
    RuntimeClass: the gang must then be planned again.
    """
    answer = valid_place(snapshot, group, reservation)
    return answer if answer is not None and _fits(snapshot, group, reservation) else None


def _fits(snapshot: Snapshot, group: PodGroup, held: Reservation) -> bool:
    """Reports whether the nodes have room for what the overhead of the pods has grown since they were
    planned. Bound pods keep the overhead with which they were created.
    """
    reserved, growth = dict(held.requests), dict[str, dict[str, int]]()
    for pod_set in as_admitted(snapshot, group).pod_sets:
        former, shape = reserved.get(pod_set.name, {}), pod_set.shape
        grown = {name: shape.requests[name] - former.get(name, 0) for name in shape.overhead}
        growth[pod_set.name] = {name: amount for name, amount in grown.items() if amount > 0}
    if not any(growth.values()):
        return True
    added = defaultdict[str, Counter[str]](Counter)
    for seat, count in snapshot.bound.empty_seats(held, terminating_too=True):
        for name, amount in growth.get(seat.pod_set, {}).items():
            added[seat.node][name] += amount * count
    reserved_too = snapshot.with_reservation(held)
    return all(
        reserved_too.taken_on(node).get(name, 0) + amount <= snapshot.nodes[node].allocatable.get(name, 0)
        for node, amounts in added.items()
        for name, amount in amounts.items()
    )


def valid_place(snapshot: Snapshot, group: PodGroup, reservation: Reservation) -> Answer | None:
    """Returns the same as `replay`, without regard to the overhead of the pods."""
    gang = _as_created(snapshot, group)
    if reservation.fingerprint not in _fingerprints(gang, reservation):
        return None
    try:
        gang = with_volumes(snapshot, gang)
    except Refusal:
        return None
    sets = {pod_set.name: pod_set for pod_set in gang.pod_sets}
    if not reservation.assignments or not all(
        (node := snapshot.nodes.get(a.node)) is not None and permits(sets[a.pod_set].shape, node)
        for a in reservation.assignments
    ):
        return None
    try:
        topology = topology_named(candidates(snapshot, gang), reservation.topology)
        warnings = topology_request(gang, topology).warnings if topology else ()
    except Refusal:
        return None
    if topology is None or not _satisfies_required_levels(snapshot, gang, topology, reservation):
        return None
    where = f" in {'/'.join(reservation.domain)}" if reservation.domain else ""
    pods_keep = "pods keep the place that was reserved for them"
    message = f"{counted(gang.size, 'pod keeps the place that was reserved for it', pods_keep)}{where}."
    answer = answer_of(reservation, "AlreadyReserved", message)
    return replace(answer, warnings=(*gang.warnings, *warnings))


def _fingerprints(gang: PodGroup, held: Reservation) -> Iterator[str]:
    """Yields the fingerprints that a reservation of this request may have.

    A gang with mode `auto`, or without a stated mode, keeps a reservation of any mode. The fingerprint of
    that reservation may contain no mode, or the mode of the reservation (as written before `auto` existed).
    """
    yield fingerprint(gang)
    if gang.reserve_is_default or gang.reserve == "auto":
        yield fingerprint(replace(gang, reserve_is_default=True))
        yield fingerprint(replace(gang, reserve_is_default=False, reserve=held.mode))


def _as_created(snapshot: Snapshot, group: PodGroup) -> ResolvedPodGroup:
    """Returns the gang with its pods as they are created, and its ResourceClaims resolved to devices; with
    its claims as requested if that fails, for example because no node offers the devices any more.
    """
    try:
        return as_created(snapshot, group)
    except Refusal:
        return resolved_group(as_admitted(snapshot, group))


def answer_of(held: Reservation, reason: str = "Reserved", message: str = "") -> Answer:
    """Returns the answer that describes a reservation, without checking the reservation."""
    return Answer(
        gang=held.gang,
        decision="admitted",
        topology=held.topology,
        level=held.level,
        domain=held.domain,
        holds=held.mode,
        reserves=held.domains,
        assignments=held.assignments,
        reason=reason,
        message=message,
        replayed=True,
    )


def _satisfies_required_levels(
    snapshot: Snapshot, group: PodGroup, topology: Topology, reservation: Reservation
) -> bool:
    """Reports whether the placement satisfies every required level: that of the gang, of each PodSet, and of
    each set of PodSets in `group.within`.
    """

    def paths(sets: Collection[str]) -> list[Domain]:
        names = [a.node for a in reservation.assignments if a.pod_set in sets]
        return [topology.path(name, snapshot.nodes[name].labels) for name in names]

    set_names = [pod_set.name for pod_set in group.pod_sets]
    asked = [
        (group.constraint.required, set_names),
        *((p.constraint.required, [p.name]) for p in group.pod_sets),
    ]
    return all(
        _in_one_domain(paths(sets), _index(topology, level)) for level, sets in [*asked, *group.within]
    )


def _index(topology: Topology, level: str) -> int:
    return topology.index(level_key(topology, level)) if level else ROOT


def _in_one_domain(paths: Iterable[Domain], level: int) -> bool:
    """Reports whether all paths are in one domain of a level, and this domain has a name: nodes without the
    level's label are in a domain without a name, which satisfies no requirement. True for `ROOT`.
    """
    if level == ROOT:
        return True
    domains = {path[: level + 1] for path in paths}
    return len(domains) <= 1 and all(domain[level] for domain in domains)
