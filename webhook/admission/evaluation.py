"""What one decision knows while it is made: the object's gangs and their plan, worked out when asked for.

A policy's expressions see the object as the former policies left it; so does the plan. The first plan is held
tentatively, so that a later look at the same gangs replays it (`webhook.planning`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.podgroup import PodGroup
from planner.planning.replay import fingerprint
from webhook.placement.group_members import GroupMember, members, running
from webhook.placement.pod_affinity import repinned
from webhook.placement.queue import Waiting, plan_in_turn
from webhook.placement.taints import kept_off
from webhook.placement.workload_plan import GangPlan, WorkloadPlan, replay_for_pod, with_claims
from webhook.variables.cluster import cluster_facts
from webhook.variables.gang_and_plan import NO_CLUSTER, gang_variable, plan_variable, pod_specs
from webhook.wire.request import AdmissionRequest
from webhook.workloads import KINDS, Workload, read, wants_plan
from webhook.workloads.annotation_keys import QUEUED_GATE

Json = Mapping[str, Any]


_GANG_KINDS = frozenset(row.name for row in KINDS.values() if row.holds and row.name != "Pod")
"""Kinds that are planned as a whole; a pod that one of them owns is not planned again by itself."""


_Size = tuple[tuple[str, int, tuple[tuple[str, int], ...]], ...]


PodGroups = Mapping[tuple[str, str], Json]


_NO_PODGROUPS: PodGroups = {}


class Lazy(Mapping[str, Any]):
    """A mapping of names to values that are worked out on first use."""

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        self._makers = makers
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class Evaluation:
    """The view of one request. `snapshot` None: no cluster is known and nothing is planned."""

    def __init__(
        self,
        request: AdmissionRequest,
        snapshot: Snapshot | None,
        podgroups: PodGroups = _NO_PODGROUPS,
        members: Sequence[GroupMember] = (),
        waiting: Callable[[], Sequence[Waiting]] = tuple,
        fenced: bool = False,
    ) -> None:
        self._request = request
        self._members = members
        self._podgroups = podgroups
        self._waiting = waiting
        self.fenced = fenced
        self._snapshot = snapshot
        self.booked = snapshot.reservations if snapshot is not None else ()
        self._read: tuple[Json, Workload] | None = None
        self._said: dict[str, tuple[Answer, _Size, PodGroup]] = {}
        self._seen: tuple[Json, Workload, WorkloadPlan | None] | None = None

    def facts(self, obj: Json, pod_set: str) -> Mapping[str, Any]:
        """The variables `gang`, `plan` and `cluster`, for the object or for one PodSet's template.

        `plan` is missing where there is none: an object that needs no plan, or no cluster.
        """
        makers: dict[str, Callable[[], Any]] = {
            "gang": lambda: gang_variable(
                self.workload(obj),
                self._request.namespace,
                pod_set,
                obj,
                self._fellows(obj),
                self.booked,
            ),
            "cluster": self._cluster,
            "plan": lambda: plan_variable(self.plan(obj), pod_set),
        }
        return Lazy(makers)

    def _fellows(self, obj: Json) -> list[GroupMember]:
        """Pods of its PodGroups of Kubernetes' own that other objects make, or that are bound already."""
        namespace = self._request.namespace or "default"
        own = list(members(obj, namespace, pod_specs(self.workload(obj), obj)))
        if not own:
            return []
        groups, kept = {one.group for one in own}, {one.who for one in own}
        bound = self._snapshot.pods if self._snapshot is not None else ()
        known = [one for one in self._members if one.namespace == own[0].namespace and one.group in groups]
        found = (*known, *running(bound, own[0].namespace, groups))
        return [one for one in dict.fromkeys(found) if one.who not in kept]

    def workload(self, obj: Json) -> Workload:
        """The gangs of the object. Raises `InputError` where it is malformed."""
        if self._read is None or self._read[0] is not obj:
            request = self._request
            found = read(
                obj,
                namespace=request.namespace or "default",
                request_uid=request.uid,
                podgroups=self._podgroups,
            )
            self._read = (obj, with_claims(self._snapshot, found))
        workload = self._read[1]
        return self._seated(workload) if workload.kind == "Pod" and workload.gangs else workload

    def _seated(self, workload: Workload) -> Workload:
        """A pod of a gang that has its place: it takes a seat there, or is a gang of its own.

        Pods come one at a time, and the first one speaks for the gang. One that asks for no more than a seat
        has fits that seat; one that asks for more must not replace what its fellows hold.
        """
        (group,) = workload.gangs
        held = self._snapshot.holding(group.name) if self._snapshot is not None else None
        if group.name == workload.name or held is None or held.fingerprint == fingerprint(group):
            return workload
        shape = group.pod_sets[0].shape
        for name, seat in held.requests:
            if all(amount <= seat.get(resource, 0) for resource, amount in shape.requests.items()):
                count = sum(one.count for one in held.assignments if one.pod_set == name)
                like = replace(group.pod_sets[0], name=name, count=count, shape=replace(shape, requests=seat))
                return replace(workload, gangs=(replace(group, pod_sets=(like,)),))
        warning = (
            f"asks for more than a seat of {group.name} has: planned by itself (apply the largest first)"
        )
        alone = replace(group.pod_sets[0], count=1)
        own = replace(group, name=workload.name, pod_sets=(alone,), warnings=(*group.warnings, warning))
        return replace(workload, gangs=(own,))

    def freed(self, obj: Json) -> Json:
        """The object as it came, or a pod without the pin to a place that its gang has left since."""
        if self._snapshot is None or obj.get("kind") != "Pod":
            return obj
        return repinned(obj, self._snapshot, self._request.namespace)

    def fenced_off(self, obj: Json, plan: WorkloadPlan | None) -> Json:
        """The object, or a new pod for GPUs that has no place of its own and does not wait for one, kept off
        what gangs hold whole."""
        workload = self.workload(obj)
        if self._snapshot is None or workload.kind != "Pod" or self._request.operation != "CREATE":
            return obj
        gates = (obj.get("spec") or {}).get("schedulingGates") or []
        waits = any(isinstance(gate, Mapping) and gate.get("name") == QUEUED_GATE for gate in gates)
        if waits or (plan is not None and plan.reservations) or not wants_plan(workload):
            return obj
        return kept_off(obj, self._snapshot)

    def plan(self, obj: Json) -> WorkloadPlan | None:
        """The plan of the object's gangs, None where there is nothing to plan. Raises as `workload` does."""
        if self._seen is None or self._seen[0] is not obj:
            workload = self.workload(obj)
            self._seen = (obj, workload, self._plan(obj, workload))
        return self._seen[2]

    def _plan(self, obj: Json, workload: Workload) -> WorkloadPlan | None:
        if self._snapshot is None or workload.skip or not workload.gangs or not wants_plan(workload):
            return None
        if self._request.operation == "UPDATE" and self._same_gangs(workload):
            return None
        if workload.kind == "Pod" and (workload.owner or _generated(obj)):
            # Such a pod was booked before it had a name, or by its owner: the id that it carries tells.
            arrived = replay_for_pod(self._snapshot, obj, self._request.namespace, workload.gangs[0])
            if arrived is not None or (workload.owner and workload.owner.split("/")[1] in _GANG_KINDS):
                return arrived
        plan = plan_in_turn(self._snapshot, workload, self._waiting)
        self._snapshot = plan.snapshot
        return replace(plan, placed=tuple(map(self._as_first_said, plan.placed)))

    def _as_first_said(self, placed: GangPlan) -> GangPlan:
        """A gang's own plan of this request again: in the words in which it was made.

        Not "already held"; and for one that has no place, not that its pods, whose template is now pinned to
        the places of its fellow replicas, have no room there.
        """
        name, answer = placed.group.name, placed.answer
        first, size, group = self._said.get(name, (answer, _size(placed.group), placed.group))
        again = answer.replayed and first.assignments == answer.assignments
        waits = answer.decision != "admitted" and first.decision == answer.decision
        if again or (waits and size == _size(placed.group)):
            self._said[name] = first, size, group
            return replace(placed, answer=first, first=group)
        self._said[name] = answer, _size(placed.group), placed.group
        return placed

    def _same_gangs(self, workload: Workload) -> bool:
        """Whether an update leaves the gangs as they were, or could not change its templates anyway."""
        old = self._request.old_object
        return workload.template_immutable or (old is not None and self.workload(old).gangs == workload.gangs)

    def _cluster(self) -> Mapping[str, Any]:
        if self._snapshot is None:
            return NO_CLUSTER
        return cluster_facts(self._snapshot)


def _size(group: PodGroup) -> _Size:
    """What a gang asks for, wherever its pods may go."""
    return tuple((one.name, one.count, tuple(sorted(one.shape.requests.items()))) for one in group.pod_sets)


def _generated(obj: Json) -> bool:
    metadata = obj.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("generateName"))
