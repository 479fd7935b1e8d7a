"""From a workload to its plan: each gang in turn, each seeing what the former ones took. Pure.

Within one request the plan that was made first is held tentatively in the snapshot. So when policies have
changed the object since, the planner replays it while it still serves, instead of planning anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.answer import Answer, Verdict
from planner.placement import plan, requirements, reservation_for
from planner.podgroup import PodGroup, PodSet, Term
from planner.reservation import Reservation
from planner.snapshot import Snapshot
from webhook.names import POD_SET, RESERVATION
from webhook.workloads import Workload

_GRAVITY: dict[Verdict, int] = {"admitted": 0, "queued": 1, "rejected": 2}
REPLICA_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
"""The label that tells which replica of a LeaderWorkerSet a pod belongs to."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One gang with the planner's answer, and what it holds (None for nothing)."""

    group: PodGroup
    answer: Answer
    reservation: Reservation | None = None


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """The answers for all gangs of one object. `snapshot` is the cluster with what they hold."""

    placed: tuple[Placed, ...]
    snapshot: Snapshot

    @property
    def decision(self) -> Verdict:
        """Rejected if any gang can never run, queued if none runs now, else admitted.

        The gangs of one object share its pod template (the replicas of a LeaderWorkerSet), so an object of
        which some replicas can start is let in, and the others wait at their own pods.
        """
        verdicts = [placed.answer.decision for placed in self.placed]
        if "rejected" in verdicts:
            return "rejected"
        return "admitted" if "admitted" in verdicts or not verdicts else "queued"

    @property
    def first(self) -> Placed:
        """The gang that tells the decision: the first rejected one, the first queued, the first of all."""
        return next(placed for placed in self.placed if placed.answer.decision == self.decision)

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        """What the gangs hold, in their order."""
        return tuple(placed.reservation for placed in self.placed if placed.reservation is not None)

    def message(self) -> str:
        """The planner's words; where several gangs fare differently, how many of each."""
        counts = Counter(placed.answer.decision for placed in self.placed)
        message = self.first.answer.message
        if len(counts) > 1:
            shares = ", ".join(f"{counts[v]} {v}" for v in sorted(counts, key=lambda v: _GRAVITY[v]))
            return f"of {len(self.placed)} replicas {shares}: {message}"
        return message

    def terms(self, pod_set: str) -> tuple[Term, ...]:
        """The node-selector terms (ORed) that pin a PodSet, or all of them for "", to its placement."""
        terms: dict[Term, None] = {}
        for placed in self.placed:
            if placed.answer.decision == "admitted":
                names = [pod_set] if pod_set else [one.name for one in placed.group.pod_sets]
                for name in names:
                    terms.update(
                        dict.fromkeys(requirements(self.snapshot, placed.group, placed.answer, name))
                    )
        return tuple(terms)


def plan_workload(snapshot: Snapshot, workload: Workload) -> WorkloadPlan:
    """Plan every gang of a workload, in order."""
    placed: list[Placed] = []
    for group in workload.gangs:
        answer = plan(snapshot, group)
        reservation = None
        if answer.decision == "admitted" and workload.holds:
            reservation = (
                snapshot.holding(group.name) if answer.replayed else reservation_for(snapshot, group, answer)
            )
        if reservation is not None:
            snapshot = snapshot.with_reservation(reservation)
        placed.append(Placed(group, answer, reservation))
    return WorkloadPlan(tuple(placed), snapshot)


def replay_for_pod(
    snapshot: Snapshot, pod: Mapping[str, Any], namespace: str, own: PodGroup
) -> WorkloadPlan | None:
    """The plan that a pod's gang already has, by the reservation id that its template gave it.

    None where it carries no id, or none that the book knows for its namespace: an id is a claim that
    anybody can write into a manifest, so a reservation of another namespace is not believed.
    """
    metadata = pod.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    annotations = metadata.get("annotations") or {}
    labels = metadata.get("labels") or {}
    ids = [one for one in str(annotations.get(RESERVATION, "")).split(",") if one]
    index = str(labels.get(REPLICA_INDEX, ""))
    if len(ids) > 1 and index.isdecimal() and int(index) < len(ids):
        ids = [ids[int(index)]]
    held = [r for r in snapshot.reservations if r.id in ids and r.gang.startswith(f"{namespace}/")]
    if not held:
        return None
    pod_set = str(annotations.get(POD_SET, ""))
    return WorkloadPlan(tuple(_replayed(r, pod_set, own) for r in held), snapshot)


def _replayed(held: Reservation, pod_set: str, own: PodGroup) -> Placed:
    names = [pod_set] if pod_set else sorted({a.pod_set for a in held.assignments})
    shape = own.pod_sets[0].shape
    group = replace(
        own,
        name=held.gang,
        reserve=held.mode,
        pod_sets=tuple(
            PodSet(name, sum(a.count for a in held.assignments if a.pod_set == name), shape) for name in names
        ),
    )
    answer = Answer(
        gang=held.gang,
        decision="admitted",
        topology=held.topology,
        level=held.level,
        domain=held.domain,
        reserves=held.domains,
        assignments=held.assignments,
        reason="Reserved",
        message=f"pod of {held.gang}, which holds {'/'.join(held.domain) or 'its nodes'}",
        replayed=True,
    )
    return Placed(group, answer, held)
