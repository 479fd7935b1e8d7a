"""The planning step of a decision: plans the gangs of one object, and plans again after policies changed it.

The first plan is kept as a tentative reservation in the snapshot, so that planning the same gangs again
replays it. By then the gangs' templates are pinned to the place, and no other gang of the request can take
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from webhook.admission.configuration.settings import queue_rules
from webhook.admission.context import RequestContext
from webhook.admission.unchanged import begins
from webhook.jsontools.path import find
from webhook.placement.gang_seat import grows
from webhook.placement.hold import stands
from webhook.placement.hold_limits import HoldLimits
from webhook.placement.pod_affinity import terms_of_annotation, without_placement_affinity
from webhook.placement.pod_gang import has_stamped_template, is_of_gang, replay_for_pod
from webhook.placement.queue import plan_in_turn
from webhook.placement.schedulers.kueue_admission import at_kueues_gate, comes_to_kueues_gate, until_admitted
from webhook.placement.stamp import placement_annotation
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import Workload, wants_plan

Json = Mapping[str, Any]


_Amounts = tuple[tuple[str, int, tuple[tuple[str, int], ...]], ...]


@dataclass(frozen=True, slots=True)
class _FirstAnswer:
    """The first answer for a gang, and the request that it answered."""

    answer: Answer
    group: PodGroup


class PlanStep:
    """Plans for one request. `snapshot` is the cluster with what the plans so far hold."""

    def __init__(self, context: RequestContext, read: Callable[[Json], Workload]) -> None:
        self.snapshot: Snapshot | None = context.snapshot
        self._request = context.request
        self._read = read
        self._waiting = context.environment.waiting
        self._rivals = context.environment.rivals
        self._settings = context.environment.settings
        self._now = context.environment.now
        self._first: dict[str, _FirstAnswer] = {}

    def plan(self, obj: Json, workload: Workload) -> WorkloadPlan | None:
        """The plan of the object's gangs, None where there is nothing to plan."""
        if self.snapshot is None or not wants_plan(workload) or self._updates_nothing(workload):
            return None
        gated_by_kueue = workload.kind == "Pod" and comes_to_kueues_gate(workload, self._request.operation)
        if workload.kind == "Pod" and (workload.owner or _has_generated_name(obj)):
            # Such a pod was reserved before it had a name, or by its owner: the id that it carries tells.
            namespace, own = self._request.namespace, workload.gangs[0]
            replayed = replay_for_pod(
                self.snapshot, obj, namespace, own, self._names_waiting, queued=_says_queued(obj)
            )
            if replayed is not None and gated_by_kueue:
                return at_kueues_gate(replayed)
            if replayed is not None or is_of_gang(obj, namespace) or _was_let_in(obj):
                return replayed
        grown = self._grown(self.snapshot, workload)
        around = self.snapshot
        if grows(around, grown):  # its pods that run are in the seats that it keeps
            around = around.ended(grown.gangs[0].name)
        rules = queue_rules(self._settings, self._now)
        plan = plan_in_turn(around, grown, self._waiting, self._rivals, self._limits, rules)
        if workload.awaits_kueue:
            plan = until_admitted(plan, around)
            if gated_by_kueue and _has_idle_place(self.snapshot, plan):
                plan = at_kueues_gate(plan)
        self.snapshot = plan.snapshot
        return replace(
            plan,
            placed=tuple(map(self._as_first_answered, plan.placed)),
            whole=_is_whole(workload),
            preview=workload.suspended,
        )

    def _limits(self, namespace: str) -> HoldLimits:
        return self._settings(namespace).holds

    def _names_waiting(self) -> Iterator[str]:
        return (gang.group.name for gang in self._waiting())

    def _grown(self, snapshot: Snapshot, workload: Workload) -> Workload:
        """The workload; of one that has its plan, the replicas' gangs as they were before it pinned them.

        The template that they share tells the places of those replicas that were there, and a new one needs
        another. The pods of a single gang stay where they are, so that a larger one has its place there.
        """
        old = self._request.old_object
        if self._request.operation != "UPDATE" or old is None:
            return workload
        written = terms_of_annotation(snapshot, placement_annotation(find(old, ("metadata", "annotations"))))
        gangs = (
            group if group.name == workload.name else without_placement_affinity(group, written)
            for group in workload.gangs
        )
        return replace(workload, gangs=tuple(gangs))

    def _updates_nothing(self, workload: Workload) -> bool:
        """Whether an update leaves the gangs as they were, or could not change its templates anyway."""
        if self._request.operation != "UPDATE":
            return False
        old = self._request.old_object
        before = self._read(old) if old is not None else workload
        if begins(before, workload):
            return False
        return workload.template_immutable or before.gangs == workload.gangs

    def _as_first_answered(self, gang_plan: GangPlan) -> GangPlan:
        """A gang's own plan of this request again: in the words in which it was made.

        Not "already reserved"; and for one that has no place, not that its pods, whose template is now pinned
        to the places of the other replicas, have no room there.
        """
        group, answer = gang_plan.group, gang_plan.answer
        first = self._first.setdefault(group.name, _FirstAnswer(answer, group))
        replayed = answer.replayed and first.answer.assignments == answer.assignments
        still_waits = (
            answer.decision != "admitted"
            and first.answer.decision == answer.decision
            and _amounts(first.group) == _amounts(group)
        )
        if replayed or still_waits:
            return replace(gang_plan, answer=first.answer, first=first.group)
        self._first[group.name] = _FirstAnswer(answer, group)
        return gang_plan


def _has_idle_place(snapshot: Snapshot, plan: WorkloadPlan) -> bool:
    """Whether the gangs of a pod have their place, and no pod is bound there.

    Kueue admits a pod group as a whole: while a pod of it runs, the others come in the flavor of its place.
    If Kueue has evicted all of it, it may admit it in another flavor when its pods come again.
    """
    return all(placed.answer.replayed and not stands(snapshot, placed.group) for placed in plan.placed)


def _is_whole(workload: Workload) -> bool:
    """Whether the object's gangs are all that starts together.

    Of a gang that several objects make, other members may be to come; a pod with an owner is one of its.
    """
    return workload.share is None and not workload.per_pod and not (workload.kind == "Pod" and workload.owner)


def _amounts(group: PodGroup) -> _Amounts:
    """What a gang asks for, wherever its pods may go."""
    return tuple(
        (pod_set.name, pod_set.count, tuple(sorted(pod_set.shape.requests.items())))
        for pod_set in group.pod_sets
    )


def _says_queued(obj: Json) -> bool:
    """Whether the template of a pod says that its gang was queued."""
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return isinstance(annotations, Mapping) and placement_annotation(annotations).in_queue


def _was_let_in(obj: Json) -> bool:
    """Whether the template of a pod says that its gang was let in without a place: for its scheduler to evict
    others, or for nodes that are to come. Planned by itself, a pod would be pinned to a place of its own."""
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(annotations, Mapping) or not has_stamped_template(obj):
        return False
    note = placement_annotation(annotations)
    return note.decision == "queued" and not note.in_queue


def _has_generated_name(obj: Json) -> bool:
    metadata = obj.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("generateName"))
