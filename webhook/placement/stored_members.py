"""Rejects an object if it and the stored members of its gang can never run together. Pure.

The objects of a gang arrive one at a time. A plan for one of them assumes that unknown members are like it,
but never rejects it because of them: they may ask for less. Once they are stored, what they ask for is known.
Without this check the last member of an impossible gang would be stored too, and all of them would wait, with
the quota of their queue, for a place that no node can give (seen with Kueue v0.19.2, plain pod groups).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.cluster.snapshot import Snapshot
from planner.model.labels import Term
from planner.model.pod import PodShape
from planner.model.topology import HOSTNAME
from planner.model.words import counted, listed
from planner.planning.node_affinity import path_term
from planner.planning.plan import plan
from webhook.placement.planning import NO_ROOM_BESIDE, without_unknown_members
from webhook.placement.shared_gangs.gang_seat import without_slices
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import Workload
from webhook.workloads.shared_gangs.merge import with_whole_gang

StoredMembers = Callable[[str], Sequence[Workload]]
"""Returns the stored objects of a gang, by the gang's name, as they are read without the other members."""

MOST_NAMED = 3
"""Maximum number of stored members that a message names."""


def no_members(_: str) -> Sequence[Workload]:
    """Stands in for `StoredMembers` if no stored object is known: returns none."""
    return ()


def rejected_with_stored(
    snapshot: Snapshot, planned: WorkloadPlan, workload: Workload, stored: StoredMembers
) -> WorkloadPlan:
    """Returns the plan of an object; the gang is rejected if its stored members and this object can never run
    together.

    `snapshot`: the cluster. `workload`: the object as read, without seats of its gang. The members are looked
    up only if the gang with members like this one does not fit, or if this one selects a domain in which the
    others may not be, because that takes time."""
    share = workload.share
    if share is None or len(planned.placed) != 1:
        return planned
    lacks_members = _lacks_members(planned.placed[0], share.size)
    own = _anywhere(workload, snapshot)
    if not lacks_members and not _selects_domain(own, snapshot):
        return planned
    (group,) = workload.gangs
    others = [member for member in stored(group.name) if member.name != workload.name]
    if not others:
        return planned
    whole = with_whole_gang(workload, (own, *(_anywhere(other, snapshot) for other in others)))
    present = without_slices(without_unknown_members(whole, whole.gangs[0]))
    if present.size > share.size:  # more than start together: some of them may be leftovers
        return planned
    answer = plan(snapshot.ended(group.name), present)
    if answer.decision != "rejected":
        return planned
    names = listed([member.name.partition("/")[2] for member in others], MOST_NAMED)
    verb = "exists" if len(others) == 1 else "exist"
    count = counted(present.size, "pod")
    message = f"{answer.message} These are the {count} of this object and of {names}, which {verb} already."
    return replace(planned, placed=(GangPlan(present, replace(answer, message=message)),), snapshot=snapshot)


def _lacks_members(placed: GangPlan, size: int) -> bool:
    """Returns whether the plan leaves out members, or has no room for this one beside the gang's seats.

    `size`: the number of pods of the gang."""
    return placed.group.size < size or placed.answer.reason == NO_ROOM_BESIDE


def _selects_domain(member: Workload, snapshot: Snapshot) -> bool:
    """Returns whether pods of the member, which is `_anywhere`, may be in some domains only."""
    levels = {level for topology in snapshot.topologies for level in topology.levels[:-1]}
    shapes = [own.shape for own in member.share.own] if member.share is not None else []
    return any(shape.affinity or not levels.isdisjoint(shape.node_selector) for shape in shapes)


def _anywhere(member: Workload, snapshot: Snapshot) -> Workload:
    """Returns the member without a selector of hosts, and with the required node affinity that a user stated
    over domains: a plan may have pinned its pods to their seats, or kept them off the places of others, Kueue
    may have chosen their hosts, and the gang may move."""
    share = member.share
    if share is None:
        return member
    own = tuple(replace(own, shape=_unpinned(own.shape, snapshot)) for own in share.own)
    return replace(member, share=replace(share, own=own))


def _unpinned(shape: PodShape, snapshot: Snapshot) -> PodShape:
    selector = {key: value for key, value in shape.node_selector.items() if key != HOSTNAME}
    terms = tuple(_of_user(term, snapshot) for term in shape.affinity)
    # Terms are ORed: an empty one allows every node.
    return replace(shape, affinity=terms if all(terms) else (), node_selector=selector)


def _of_user(term: Term, snapshot: Snapshot) -> Term:
    """Returns the values of levels among which a term chooses, without the path of a whole domain: a plan
    writes this. A user's requirement that is the same as one of the path is left out with it."""
    levels: set[str] = set()
    value_of = {need.key: need.values[0] for need in term if need.operator == "In" and len(need.values) == 1}
    path: Term = ()
    for topology in snapshot.topologies:
        levels.update(topology.levels[:-1])
        for depth in range(topology.host_index, 0, -1):
            domain = tuple(value_of.get(level, "") for level in topology.levels[:depth])
            if not path and domain[-1] and snapshot.base.trees[topology.name].branch(domain) is not None:
                path = path_term(topology.levels, domain)
    return tuple(need for need in term if need.operator == "In" and need.key in levels and need not in path)
