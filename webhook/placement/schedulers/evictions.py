"""Keeps gangs for which their scheduler evicts others off the nodes of gangs that are about to start. Pure.

The nodes of gangs that run are open to such a gang: its scheduler frees them. So are the nodes of a gang that
was evicted: it keeps its reservation, but others use its nodes. Nodes that other gangs hold whole and are
about to use are not: they would lose their place to it before they start. They run within seconds, but the
node affinity of a pod without gates can never change. A pod that was created while many gangs were about to
start would have hardly a node for the rest of its life. Therefore no affinity is written at admission: the
pod waits at Bayplan's gate while there are such nodes, and the controller lets the gang in as soon as the
other nodes are enough for all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.labels import Term
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation
from planner.planning.plan import plan
from webhook.placement.gate import gated
from webhook.placement.taints import excluding, with_tolerations


def before_evictions(pod: Mapping[str, Any], snapshot: Snapshot) -> Mapping[str, Any]:
    """Returns a pod for which its scheduler may evict others: it tolerates the taints of all gangs but those
    that are about to start, and has Bayplan's gate while there are any of these that hold whole nodes.
    """
    spec = pod.get("spec")
    if not isinstance(spec, Mapping):
        return pod
    if others := open_reservations(snapshot):
        spec = {**spec, "tolerations": with_tolerations(spec.get("tolerations"), others)}
    return {**pod, "spec": gated(spec, waits=True) if unstarted(snapshot) else spec}


def open_reservations(snapshot: Snapshot) -> tuple[Reservation, ...]:
    """Returns the reservations of gangs that run, were evicted, or hold no whole nodes."""
    protected = set(unstarted(snapshot).values())
    return tuple(held for held in snapshot.reservations if held.gang not in protected)


def unstarted(snapshot: Snapshot) -> dict[str, str]:
    """Returns, by node, the gang that holds the node whole and is about to start: none of its pods is bound,
    and no other pod uses a device of a node on which it has a seat.
    """
    gangs = {
        held.gang
        for held in snapshot.reservations
        if held.mode == "domain" and not snapshot.runs(held) and not _was_evicted(snapshot, held)
    }
    return {node: gang for node, gang in snapshot.holders.items() if gang in gangs}


def _was_evicted(snapshot: Snapshot, held: Reservation) -> bool:
    """Returns whether other pods use the devices of a gang without bound pods. Only names of extended
    resources have a slash.
    """
    pods = (pod for seat in held.assignments for pod in snapshot.bound.on(seat.node) if not pod.daemon)
    return any(pod.claims or any("/" in name for name in pod.requests) for pod in pods)


def off_unstarted(snapshot: Snapshot) -> Term:
    """Returns the node requirements that exclude the nodes of `unstarted`; () if there are none."""
    return excluding(snapshot, unstarted(snapshot))


def fits_beside_unstarted(snapshot: Snapshot, group: PodGroup) -> bool:
    """Returns whether the whole gang could ever run without the nodes of `unstarted`, whatever runs on the
    others now: its plan is not rejected.

    Whether the scheduler can free the other nodes is left to it: it knows the priorities of what runs.
    """
    excluded = off_unstarted(snapshot)
    sets = tuple(
        replace(own, shape=replace(own.shape, affinity=_narrowed(own.shape.affinity, excluded)))
        for own in group.pod_sets
    )
    return not excluded or plan(snapshot, replace(group, pod_sets=sets)).decision != "rejected"


def _narrowed(terms: tuple[Term, ...], added: Term) -> tuple[Term, ...]:
    """Returns node selector terms, of which one must hold, each with the requirements `added`."""
    return tuple((*term, *added) for term in terms or ((),))
