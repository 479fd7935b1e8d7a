"""Decides what to do about the places that Kueue has assigned, and to which gangs they belong. Pure.

A place belongs to a gang if the gang's object owns the Workload, or if the Workload's pods name the gang's
reservation: that reservation moves to the assigned nodes. Every other place is reserved under the Workload's
own name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from planner.cluster.snapshot import Snapshot
from planner.cluster.usage.occupancy import carried
from planner.model.names import kind_of, namespace_of
from planner.model.reservation import KUEUE_KIND, Reservation, reservation_id
from planner.planning.reservation import headroom
from webhook.kube.controller.kueue.adoption import NodesByLabels, adopted, pods_of
from webhook.kube.controller.steps import Action, Adopt, LetIn, NotAdopted, Release
from webhook.kube.state.gangs import Ref
from webhook.kube.state.gathering import Gang
from webhook.kube.state.kueue_places import KueuePlace

KueuePlaces = Mapping[str, KueuePlace]
"""The places that Kueue has assigned, by the name of the Workload's own gang (`KueuePlace.gang`)."""

ENDED = "Kueue has ended it, or taken its nodes back"
ABANDONED = "its pods have ended, and nobody has made those that Kueue waits for"


@dataclass(frozen=True, slots=True)
class KueueRound:
    """The result for all places. `snapshot`: the cluster after the actions; `gangs`: the names of the gangs
    that Kueue places, which `reconcile` otherwise neither moves, plans nor admits.
    """

    snapshot: Snapshot
    actions: tuple[Action, ...] = ()
    gangs: frozenset[str] = frozenset()


def no_longer_assigned(
    reservation: Reservation, places: KueuePlaces | None, unbound: Set[str], snapshot: Snapshot
) -> str:
    """Returns why a reservation under a Workload's own name is not needed any more; "" while it is needed,
    for reservations of other gangs, and if `places` is None.

    `unbound`: the UIDs of the unbound pods.
    """
    if kind_of(reservation.gang) != KUEUE_KIND or places is None:
        return ""
    place = places.get(reservation.gang)
    if place is None:
        return ENDED
    return ABANDONED if is_abandoned(snapshot, place, unbound) else ""


def is_abandoned(snapshot: Snapshot, place: KueuePlace, unbound: Set[str]) -> bool:
    """Returns whether a pod group has no pods, bound or unbound, while Kueue waits for replacements.

    Kueue keeps the quota, but the creator of the pods may never create replacements. If it creates some, the
    nodes are reserved again.
    """
    if not place.waits_for_pods or pods_of(snapshot, place):
        return False
    return not any(owner.uid in unbound for owner in place.owners)


def kueue_round(
    snapshot: Snapshot,
    gangs: Mapping[str, Gang],
    places: KueuePlaces | None,
    observed: frozenset[str],
    unbound: Set[str],
) -> KueueRound:
    """Returns what is to be done for Kueue's assignments.

    `observed`: the namespaces that are not enforced; places in them are ignored. `unbound`: the UIDs of the
    unbound pods.
    """
    if not places:
        return KueueRound(snapshot)
    of_owner, nodes = _by_owner(gangs), NodesByLabels(snapshot)
    actions: list[Action] = []
    placed: set[str] = set()
    for place in places.values():
        if place.ref.namespace in observed or is_abandoned(snapshot, place, unbound):
            continue
        own = [gangs[name] for name in _gangs_of(place, of_owner)]
        placed.update(gang.name for gang in own)
        holding = _holding(snapshot, place, own)
        if len(holding) > 1:  # several gangs share the Workload: it is unknown which seat is for which
            for unclear in holding:
                if not snapshot.runs(unclear):
                    actions.append(Release(unclear, "Kueue places its pods", gangs.get(unclear.gang)))
                    snapshot = snapshot.without(unclear.gang)
            continue
        # The gang's own reservation replaces the one under the Workload's name.
        if holding and (double := snapshot.holding(place.gang)) is not None:
            actions.append(Release(double, f"{holding[0].gang} holds it"))
            snapshot = snapshot.without(place.gang)
        name = holding[0].gang if holding else place.gang
        placed.add(name)
        outcome = adopted(snapshot, place, name, nodes)
        tell = own[0].ref if own else _recipient(place)
        held, wanted = snapshot.holding(name), outcome.reservation
        if wanted is not None and wanted != held:
            snapshot = snapshot.with_reservation(wanted)
            actions.append(Adopt(place, wanted, headroom(snapshot, wanted), tell))
        elif wanted is None and held is not None and kind_of(name) == KUEUE_KIND:
            actions.append(Release(held, outcome.words))
            snapshot = snapshot.without(name)
        if outcome.lacking:
            actions.append(NotAdopted(place, outcome.words, tell))
        actions += _let_in(snapshot, own)
    return KueueRound(snapshot, tuple(actions), frozenset(placed))


def _let_in(snapshot: Snapshot, gangs: Iterable[Gang]) -> Iterator[Action]:
    """Yields actions that admit the pods of gangs that Kueue places, and write the reservation's id onto
    them; Kueue pins them to their nodes.
    """
    for gang in gangs:
        held, name = snapshot.holding(gang.name), reservation_id(gang.name)
        pods = tuple(pod for pod in gang.pods if pod.gated or (held is not None and name not in pod.ids))
        if pods and not gang.finished:
            yield LetIn(gang, held, pods, pins=False)


def _by_owner(gangs: Mapping[str, Gang]) -> dict[str, dict[str, None]]:
    """Returns the names of gangs by the UID of each of their objects and pods."""
    result: dict[str, dict[str, None]] = {}
    for gang in gangs.values():
        for uid in {gang.ref.uid, *(ref.uid for ref in gang.refs), *(pod.ref.uid for pod in gang.pods)}:
            result.setdefault(uid, {})[gang.name] = None
    return result


def _gangs_of(place: KueuePlace, of_owner: Mapping[str, Mapping[str, None]]) -> list[str]:
    names = (name for owner in place.owners for name in of_owner.get(owner.uid, ()))
    # The API server does not check the UIDs of owners: a user may state one of another namespace.
    return list(dict.fromkeys(name for name in names if namespace_of(name) == place.ref.namespace))


def _holding(snapshot: Snapshot, place: KueuePlace, own: Iterable[Gang]) -> list[Reservation]:
    """Returns the reservations for the Workload's pods, except the one under the Workload's own name."""
    ids = {name for pod in pods_of(snapshot, place) for name in carried(pod)}
    gangs = (snapshot.holds.gangs.get(name) for name in sorted(ids))
    # Users can copy the annotation from a pod of another namespace: such an id has no effect.
    by_pods = [gang for gang in gangs if gang and namespace_of(gang) == place.ref.namespace]
    names = dict.fromkeys((*(gang.name for gang in own), *by_pods))
    held = (snapshot.holding(name) for name in names if name != place.gang)
    return [reservation for reservation in held if reservation is not None]


def _recipient(place: KueuePlace) -> Ref:
    """Returns the object on which events are written: the first owner of the Workload, or the Workload
    itself.
    """
    return place.owners[0] if place.owners and place.owners[0].uid else place.ref
