"""Keeps gangs for which their scheduler evicts others off the nodes of gangs that are about to start. Pure.

The nodes of gangs that run are open to such a gang: its scheduler frees them. Nodes that other gangs hold
whole and do not use yet are not: they would lose their place to it before they start. They run within
seconds, but the node affinity of a pod without gates can never change. A pod that was created while many
gangs were about to start would have hardly a node for the rest of its life. Therefore no affinity is written
at admission: the pod waits at Bayplan's gate while there are such nodes, and the controller lets the gang in
as soon as the other nodes are enough for all of it.
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
    """Returns a pod for which its scheduler may evict others: it tolerates the taints of the gangs that run,
    and has Bayplan's gate while other gangs hold whole nodes and have not started.
    """
    spec = pod.get("spec")
    if not isinstance(spec, Mapping):
        return pod
    if running := started(snapshot):
        spec = {**spec, "tolerations": with_tolerations(spec.get("tolerations"), running)}
    return {**pod, "spec": gated(spec, waits=True) if unstarted(snapshot) else spec}


def started(snapshot: Snapshot) -> tuple[Reservation, ...]:
    """Returns the reservations of gangs of which a pod is bound."""
    return tuple(held for held in snapshot.reservations if snapshot.runs(held))


def unstarted(snapshot: Snapshot) -> dict[str, str]:
    """Returns, by node, the gang that holds the node whole and of which no pod is bound."""
    running = {held.gang for held in started(snapshot)}
    return {node: gang for node, gang in snapshot.holders.items() if gang not in running}


def off_unstarted(snapshot: Snapshot) -> Term:
    """Returns the node requirements that exclude the nodes of `unstarted`; () if there are none."""
    return excluding(snapshot, unstarted(snapshot))


def fits_beside_unstarted(snapshot: Snapshot, group: PodGroup) -> bool:
    """Returns whether the whole gang fits the empty cluster without the nodes of `unstarted`.

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
