"""The reservation for an admitted answer. Nothing is reserved here; the ledger does that."""

from __future__ import annotations

from planner.cluster.snapshot import Snapshot
from planner.cluster.trees.tree import TopologyTree
from planner.ledger.conflicts import Counted, NodeRoom
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.model.reservation import Reservation, reservation_id, traits_of
from planner.planning.replay import fingerprint


def reservation_for(snapshot: Snapshot, group: PodGroup, answer: Answer) -> Reservation | None:
    """Returns the reservation for an admitted answer; None for mode `none` or a gang that is not admitted.

    The caller sets `created` and `expires`. For a replayed answer, returns the existing reservation.
    """
    if answer.decision != "admitted" or answer.holds == "none":
        return None
    if answer.replayed:
        return snapshot.holding(group.name)
    gang = answer.request
    assert gang is not None, "a new plan carries the request that it answers"
    tree = snapshot.base.trees[answer.topology]
    wide = snapshot.base.wide_trees[answer.topology] if _outside(tree, answer) else tree
    held = (wide.branch(domain) for domain in answer.reserves)
    return Reservation(
        id=reservation_id(group.name),
        gang=group.name,
        topology=answer.topology,
        level=answer.level,
        domain=answer.domain,
        mode=answer.holds,
        domains=answer.reserves,
        nodes=frozenset(name for branch in held if branch for name in wide.names(branch)),
        assignments=answer.assignments,
        requests=tuple((p.name, p.shape.amounts_per_pod) for p in gang.pod_sets if p.count),
        traits=tuple((p.name, traits) for p in gang.pod_sets if p.count and (traits := traits_of(p.shape))),
        fingerprint=fingerprint(gang),
    )


def headroom(snapshot: Snapshot, held: Reservation) -> dict[str, NodeRoom]:
    """Returns by node the amounts that are free after `held` has taken its own, and the amounts of each other
    reservation, for `planner.ledger.conflicts`.

    `snapshot`: the cluster that includes `held`. The result has no entry for a node whose free amounts do not
    say whether a pod fits (`Snapshot.plain_free_on`), and is empty for a reservation of whole domains, for
    which amounts do not matter.
    """
    if held.mode != "nodes":
        return {}
    rooms = ((node, snapshot.plain_free_on(node)) for node in sorted(held.touched))
    return {
        node: NodeRoom(
            free,
            {
                other.id: Counted(other.fingerprint, uses)
                for other, uses in snapshot.holds.on(node)
                if other.id != held.id
            },
        )
        for node, free in rooms
        if free is not None
    }


def _outside(tree: TopologyTree, answer: Answer) -> bool:
    return any(assignment.node not in tree.places for assignment in answer.assignments)
