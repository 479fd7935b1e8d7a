"""The planning step of a decision: plans the gangs of one object, and again after policies changed the
object.

The first plan stays in the snapshot as a tentative reservation, which is not written to the ledger. If the
same gangs are planned again, the first plan is repeated (*replayed*): policies have pinned the templates to
this place, and no other gang of the request may take it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.errors import InputError
from planner.model.podgroup import PodGroup
from planner.planning.replay import replay
from webhook.admission.configuration.settings import queue_rules
from webhook.admission.context import RequestContext
from webhook.admission.updates.resized_gang import plan_resized
from webhook.admission.updates.unchanged import starts_pods
from webhook.jsontools.path import find
from webhook.placement.hold import has_bound_pod
from webhook.placement.hold_limits import HoldLimits
from webhook.placement.planning import plan_workload
from webhook.placement.pod_affinity import terms_of_object, without_placement_affinity
from webhook.placement.pod_gang import has_stamped_template, is_of_gang, replay_for_pod
from webhook.placement.queue import plan_in_turn
from webhook.placement.schedulers.kueue_admission import at_kueues_gate, comes_to_kueues_gate, until_admitted
from webhook.placement.shared_gangs.gang_seat import shared_gang_changed
from webhook.placement.stamp import placement_annotation
from webhook.placement.workload_plan import GangPlan, WorkloadPlan
from webhook.workloads import Workload, wants_plan

Json = Mapping[str, Any]


Read = Callable[[Json], Workload]
"""Returns the workload of an object. Raises `InputError` if the object is malformed."""


_Part = Literal["", "size", "gangs"]
"""What is planned: the gangs, only their size, or nothing."""


_Amounts = tuple[tuple[str, int, tuple[tuple[str, int], ...]], ...]


@dataclass(frozen=True, slots=True)
class _FirstAnswer:
    """The first answer for a gang, and the gang as it was then."""

    answer: Answer
    group: PodGroup


class PlanStep:
    """Plans for one request. `snapshot`: the cluster with the tentative reservations of the plans made so
    far; None without a cluster.
    """

    def __init__(self, context: RequestContext) -> None:
        self.snapshot: Snapshot | None = context.snapshot
        self._request = context.request
        self._waiting = context.environment.waiting
        self._rivals = context.environment.rivals
        self._settings = context.environment.settings
        self._now = context.environment.now
        self._first: dict[str, _FirstAnswer] = {}

    def plan(self, obj: Json, workload: Workload, read: Read) -> WorkloadPlan | None:
        """Returns the plan of the object's gangs. None if there is nothing to plan, or if the object is a pod
        that may only follow the plan of its gang, and the gang has none. `read`: reads the object before an
        update.
        """
        if self.snapshot is None or not wants_plan(workload):
            return None
        part = self._planned_part(workload, read)
        if not part:
            return None
        if workload.kueue_places:  # only to refuse what can never run, which an owner shows before its pods
            is_first = self._request.operation == "CREATE" and not workload.owner
            plan = plan_workload(self.snapshot, workload) if is_first else None
            return plan and replace(plan, whole=_is_whole(workload))
        gated_by_kueue = workload.kind == "Pod" and comes_to_kueues_gate(workload, self._request.operation)
        if workload.kind == "Pod" and (workload.owner or _has_generated_name(obj)):
            # The pod's place was reserved for its owner, or before the pod had a name; its annotation has the
            # id of that reservation.
            namespace, own = self._request.namespace, workload.gangs[0]
            replayed = replay_for_pod(
                self.snapshot, obj, namespace, own, self._names_waiting, queued=_says_queued(obj)
            )
            if replayed is not None and gated_by_kueue:
                return at_kueues_gate(replayed)
            # A pod of a gang without a place is not planned: alone it could get a place away from its gang.
            if replayed is not None or is_of_gang(obj, namespace) or _was_let_in(obj):
                return replayed
        asked = self._without_former_place(self.snapshot, workload, read)
        remaining = self._remaining(self.snapshot, asked)
        plan = self._of_held_place(self.snapshot, asked)
        if plan is None and part == "size":
            return None
        if plan is None:
            plan = self._in_turn(remaining, asked)
            if plan.decision == "queued" and self._request.operation == "UPDATE":
                plan = self._where_its_pods_run(remaining, asked) or plan
        if workload.awaits_kueue:
            plan = until_admitted(plan, remaining)
            if gated_by_kueue and _has_idle_place(self.snapshot, plan):
                plan = at_kueues_gate(plan)
        self.snapshot = plan.snapshot
        return replace(
            plan,
            placed=tuple(map(self._as_first_answered, plan.placed)),
            whole=_is_whole(workload),
            preview=workload.suspended,
        )

    def _in_turn(self, snapshot: Snapshot, workload: Workload) -> WorkloadPlan:
        rules = queue_rules(self._settings, self._now)
        return plan_in_turn(snapshot, workload, self._waiting, self._rivals, self._limits, rules)

    def _where_its_pods_run(self, snapshot: Snapshot, workload: Workload) -> WorkloadPlan | None:
        """Returns the plan of changed gangs that hold places, with the room of their own pods, which the new
        ones replace. None if they have no place even there."""
        freed = _without_changed_gangs(snapshot, workload)
        plan = self._in_turn(freed, workload) if freed is not snapshot else None
        if plan is None or plan.decision != "admitted":
            return None
        return replace(plan, placed=tuple(map(_once_pods_end, plan.placed)))

    def _limits(self, namespace: str) -> HoldLimits:
        return self._settings(namespace).holds

    def _names_waiting(self) -> Iterator[str]:
        return (gang.group.name for gang in self._waiting())

    def _of_held_place(self, snapshot: Snapshot, workload: Workload) -> WorkloadPlan | None:
        """Returns the plan of an updated object whose gang keeps the seats that it holds, else None."""
        if self._request.operation != "UPDATE" or workload.suspended:
            return None
        return plan_resized(snapshot, workload, self._limits(self._request.namespace))

    def _remaining(self, snapshot: Snapshot, workload: Workload) -> Snapshot:
        """Returns the cluster without the gangs that are planned anew although they hold a place: a growing
        gang of several objects, because the grown gang contains its held seats, and changed replicas of a
        LeaderWorkerSet, because their pods are replaced."""
        if shared_gang_changed(snapshot, workload):
            return snapshot.ended(workload.gangs[0].name)
        if self._request.operation == "UPDATE" and workload.kind == "LeaderWorkerSet":
            return _without_changed_gangs(snapshot, workload)
        return snapshot

    def _without_former_place(self, snapshot: Snapshot, workload: Workload, read: Read) -> Workload:
        """Returns the workload; for an update, without the node affinity that former plans wrote.

        Pods that run stay where they are, and pods that come are pinned anew when they are created."""
        old = self._request.old_object
        if self._request.operation != "UPDATE" or old is None:
            return workload
        try:
            written = terms_of_object(old, read(old), snapshot)
        except InputError:  # it was stored before Bayplan was installed
            return workload
        gangs = (without_placement_affinity(group, written) for group in workload.gangs)
        return replace(workload, gangs=tuple(gangs))

    def _planned_part(self, workload: Workload, read: Read) -> _Part:
        """Returns what is planned: the gangs of a new object, or those that an update changes; of a kind with
        immutable templates only the size of a gang; nothing if an update changes no gang.

        An update that resumes an object, or scales it up from no pods, always changes its gangs."""
        old = self._request.old_object
        if self._request.operation != "UPDATE":
            return "gangs"
        changed: _Part = "size" if workload.template_immutable else "gangs"
        try:
            before = read(old) if old is not None else workload
        except InputError:  # it was stored before Bayplan was installed
            return changed
        if starts_pods(before, workload):
            return "gangs"
        return "" if before.gangs == workload.gangs or workload.kind == "Pod" else changed

    def _as_first_answered(self, gang_plan: GangPlan) -> GangPlan:
        """Returns the plan of a gang with the first answer that it got in this request, if still true.

        A later answer would mislead: it calls a replayed place "already reserved". For a replica without a
        place, it says that the places of the other replicas are full, because policies have pinned the common
        template to these places.
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


def _without_changed_gangs(snapshot: Snapshot, workload: Workload) -> Snapshot:
    """Returns the cluster without the reservations and pods of gangs whose places are for other pods than
    the gangs ask for now."""
    for group in workload.gangs:
        held = snapshot.holding(group.name)
        if held is not None and replay(snapshot, group, held) is None:
            snapshot = snapshot.ended(group.name)
    return snapshot


def _once_pods_end(gang_plan: GangPlan) -> GangPlan:
    """Returns the plan of a gang with a warning that its place includes the room of pods that run."""
    warning = "its new pods get the room of those that run now, and start as these end"
    answer = gang_plan.answer
    return replace(gang_plan, answer=replace(answer, warnings=(*answer.warnings, warning)))


def _has_idle_place(snapshot: Snapshot, plan: WorkloadPlan) -> bool:
    """Returns whether the gangs of a pod hold a place, and no pod is bound there.

    Kueue admits a pod group as a whole: while one of its pods runs, its new pods get the same flavor. After
    Kueue has evicted all its pods, it may admit them in another flavor, that is, on other nodes.
    """
    return all(placed.answer.replayed and not has_bound_pod(snapshot, placed.group) for placed in plan.placed)


def _is_whole(workload: Workload) -> bool:
    """Returns whether the object's gangs contain everything that starts together (`WorkloadPlan.whole`).

    A gang of several objects may get further members; a pod with an owner is only one pod of its gang.
    """
    return workload.share is None and not workload.per_pod and not (workload.kind == "Pod" and workload.owner)


def _amounts(group: PodGroup) -> _Amounts:
    """Returns name, count and requests of each PodSet, to compare gangs without selectors and affinity."""
    return tuple(
        (pod_set.name, pod_set.count, tuple(sorted(pod_set.shape.requests.items())))
        for pod_set in group.pod_sets
    )


def _says_queued(obj: Json) -> bool:
    """Returns whether the annotation from a pod's template says that its gang was queued."""
    return placement_annotation(find(obj, ("metadata", "annotations"))).in_queue


def _was_let_in(obj: Json) -> bool:
    """Returns whether the annotation from a pod's template says that its gang was admitted without a place:
    its scheduler evicts other pods, or an autoscaler adds nodes. A plan for the pod alone would pin it to a
    node away from its gang.
    """
    if not has_stamped_template(obj):
        return False
    note = placement_annotation(find(obj, ("metadata", "annotations")))
    return note.decision == "queued" and not note.in_queue


def _has_generated_name(obj: Json) -> bool:
    metadata = obj.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("generateName"))
