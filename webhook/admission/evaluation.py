"""Computes the values that a decision needs: the workload, the plan, and the CEL variables.

A policy sees the object with the changes of the policies that ran before it, and the values are computed from
this object. They are computed on first use, except for the plan: `make_plan` is an explicit step of the
decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_not
from typing import Any

from planner.cluster.plan_cache import DerivedSection
from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError
from planner.node.node_groups import NodeGroup
from webhook.admission.bounds import check_bounds
from webhook.admission.context import RequestContext
from webhook.admission.level_of_policies import with_level_of_policies
from webhook.admission.plan_step import PlanStep
from webhook.admission.updates.fewer_replicas import fewer_replicas
from webhook.admission.updates.reapply import without_plan
from webhook.admission.updates.unchanged import changeable_templates, needs_plan
from webhook.cel import CostBudget
from webhook.cel.libraries.authorizer import Authorizer
from webhook.cel.values.stand_in import StandIn
from webhook.jsontools.path import Path, find
from webhook.placement.gate import is_gated
from webhook.placement.group_members import GroupMember, members, other_members
from webhook.placement.planning import with_claims
from webhook.placement.pod_affinity import is_pinned, terms_of_annotation, without_former_placement
from webhook.placement.pod_gang import has_stamped_template
from webhook.placement.schedulers.evictions import before_evictions
from webhook.placement.schedulers.kai_queue import within_kai_queue
from webhook.placement.schedulers.kueue_admission import in_kueues_queue, with_flavor_tolerations
from webhook.placement.shared_gangs.gang_seat import with_gang_seat
from webhook.placement.stamp import placement_annotation
from webhook.placement.stated_amounts import as_noted, with_stated
from webhook.placement.stored_members import rejected_with_stored
from webhook.placement.taints import keep_off_reserved
from webhook.placement.workload_plan import WorkloadPlan
from webhook.policy.engine.forms.equal_objects import EqualObjects
from webhook.policy.engine.inputs import Params, poll_policies
from webhook.variables.cluster import (
    NO_CLUSTER,
    ClusterOfNodes,
    cluster_variable,
    records_of_cluster,
    shared_limits,
)
from webhook.variables.cluster_hardware import SameRecords
from webhook.variables.gang import gang_variable
from webhook.variables.plan import NO_PLAN, PlanVariable
from webhook.workloads import Template, Workload, read, wants_plan
from webhook.workloads.read_templates import ReadTemplates
from webhook.workloads.shared_gangs.merge import with_whole_gang
from webhook.workloads.stored import controller_row
from webhook.workloads.templates import pod_specs
from webhook.workloads.varying_values import varies

Json = Mapping[str, Any]


_EQUAL_OBJECTS: DerivedSection[SameRecords, EqualObjects] = DerivedSection(
    "outcomes of policies on equal objects", max_keys=1
)


_WITHOUT_CLUSTER = EqualObjects()
"""The outcomes of policies on equal objects without a cluster, for all requests: `cluster` is then always
`NO_CLUSTER`."""


class LazyMapping(Mapping[str, Any]):
    """A mapping whose values are computed on first use."""

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        self._makers = makers
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = self._makers[name]()
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class Evaluation:
    """The state of one decision. It gives the policy engine its inputs (`PolicyInputs`).

    `obj`: the object of the request, possibly with its stored templates (`updates.reapply`). `original`: the
    workload of `obj`. `changeable`: which of its templates may change. `plan`: the result of the last
    `make_plan`, None if nothing is planned. Raises `InputError` if the object is malformed or exceeds the
    bounds in `bounds`.
    """

    def __init__(self, context: RequestContext, obj: Json) -> None:
        self._context = context
        self._reserved = context.snapshot.reservations if context.snapshot is not None else ()
        self._read: tuple[Json, Workload] | None = None
        self._templates = ReadTemplates()
        self._gang_read: tuple[Workload, Json, dict[str, Any]] | None = None
        self._plan_step = PlanStep(context)
        self._members: dict[str, Sequence[Workload]] = {}
        """By gang: its stored members. Kept, because a decision plans before and after the policies, and the
        lookup reads the namespace.
        """
        self._planned: Json | None = None
        self._plan_variable: PlanVariable | None = None
        self.plan: WorkloadPlan | None = None
        self.original = _as_noted(self.workload(obj), obj)
        self.changeable = changeable_templates(context.request, obj, self.original)
        asks_anew = context.request.operation == "CREATE" or self.changeable.changed
        if asks_anew and context.snapshot is not None and wants_plan(self.original):
            check_bounds(self.original)

    @property
    def _snapshot(self) -> Snapshot | None:
        """The cluster with the plan's tentative reservations; None without a cluster."""
        return self._plan_step.snapshot

    def workload(self, obj: Json) -> Workload:
        """Returns the object's workload. Raises `InputError` if it is malformed."""
        workload = self._unseated(obj)
        if workload.name in self._context.environment.sharing:
            return workload
        # Uses the snapshot without the plan's tentative reservation, in which the gang already has a seat for
        # this pod.
        return with_gang_seat(self._context.snapshot, workload, obj)

    def _unseated(self, obj: Json) -> Workload:
        """Returns the object's workload, before its gang gets the seats that it holds already."""
        # Several policies ask for the workload of the same object, so the result for the last object is kept.
        if self._read is None or self._read[0] is not obj:
            request = self._context.request
            workload = read(
                obj,
                namespace=request.namespace or "default",
                request_uid=request.uid,
                podgroups=self._context.environment.podgroups,
                templates=self._templates,
            )
            workload = self._with_members(workload)
            defaults = self._context.settings.reserve
            held = tuple(map(defaults.of, workload.gangs))
            if any(map(is_not, held, workload.gangs)):
                workload = replace(workload, gangs=held)
            if workload.kueue and self._snapshot is not None:
                workload = in_kueues_queue(workload, self._snapshot.base.schedulers, request.operation)
            if self._snapshot is not None:
                workload = within_kai_queue(workload, obj, self._snapshot)
            if workload.owner and not workload.skip and controller_row(obj) is not None:
                workload = replace(workload, skip=self._context.environment.skips(workload.owner))
            self._read = (obj, with_claims(self._snapshot, workload))
        return self._read[1]

    def _with_members(self, workload: Workload) -> Workload:
        """Returns the workload with its whole gang, if all members are applied together
        (`Environment.sharing`).

        All members are taken as the policies change them without a cluster, that is, without the affinity of
        a place, so that each member gets the same gang.
        """
        gang_members = self._context.environment.sharing.get(workload.name, ())
        if workload.share is None or not workload.gangs or not gang_members:
            return workload
        return with_whole_gang(workload, gang_members)

    def make_plan(self, obj: Json) -> WorkloadPlan | None:
        """Returns the plan of the object's gangs; None if nothing is to be planned. Raises `InputError`.

        The plan is made before and after the policies that write it onto the object. If these policies
        changed nothing else, the second plan repeats the first; if they changed the request, it is a new one.
        """
        if self._planned is not obj:
            workload = self.workload(obj)
            asked = needs_plan(self._context.request, self._before(workload), workload, self.changeable)
            stated_workload = with_stated(workload, self.original)
            plan = self._plan_step.plan(obj, stated_workload, self.workload) if asked else None
            plan = plan and self._with_stored_members(plan, obj)
            if plan is not None and workload.kueue_places and plan.decision != "rejected":
                plan = None
            self.plan = plan and with_level_of_policies(plan, self.original)
            self._plan_variable = None
            self._planned = obj
        return self.plan

    def _stored_members(self, gang: str) -> Sequence[Workload]:
        members = self._members.get(gang)
        if members is None:
            members = self._context.environment.stored_members(gang)
            if (snapshot := self._context.snapshot) is not None:
                members = [with_flavor_tolerations(member, snapshot.base.schedulers) for member in members]
            self._members[gang] = members
        return members

    def _with_stored_members(self, plan: WorkloadPlan, obj: Json) -> WorkloadPlan:
        """Returns the plan; rejected if the object can never run together with the stored members of its
        gang."""
        snapshot, environment = self._context.snapshot, self._context.environment
        workload = self._unseated(obj)
        if snapshot is None or workload.name in environment.sharing:
            return plan
        return rejected_with_stored(snapshot, plan, workload, self._stored_members)

    def _before(self, workload: Workload) -> Workload:
        """Returns the workload of the object before an update; `workload` if there is none or it is
        malformed."""
        old = self._context.request.old_object
        try:
            return workload if old is None else self.workload(old)
        except InputError:  # it was stored before Bayplan was installed
            return workload

    def without_former_place(self, obj: Json) -> Json:
        """Returns the object; if it is a pod, without the node affinity to a place that its gang has left."""
        if self._snapshot is None or self.original.kind != "Pod":  # the fields of unknown kinds are unchecked
            return obj
        return without_former_placement(obj, self._snapshot, self._context.request.namespace)

    def without_plan(self, obj: Json) -> Json:
        """Returns the object without what the plan of its gang wrote into its templates."""
        if self._snapshot is None:
            return obj
        try:
            return without_plan(obj, self.workload(obj), self._snapshot)
        except InputError:  # it was stored before Bayplan was installed
            return obj

    def kept_off_reserved(self, obj: Json) -> Json:
        """Returns the object; a new GPU pod that has no place and waits for none gets an affinity that keeps
        it off the domains that gangs hold whole, or waits for evictions there (`schedulers.evictions`).

        Exception: a pod that the affinity in its workload's template pins to a place which another gang holds
        whole by now. Both affinities together would leave it no node.
        """
        is_pod = self.original.kind == "Pod"
        if self._snapshot is None or not is_pod or self._context.request.operation != "CREATE":
            return obj
        has_place = self.plan is not None and self.plan.reservations
        workload = self.workload(obj)
        if is_gated(obj) or has_place or not wants_plan(workload) or workload.kueue_places:
            return obj
        annotations = (obj.get("metadata") or {}).get("annotations") or {}
        note = placement_annotation(annotations if has_stamped_template(obj) else {})
        affinity = find(obj, ("spec", "affinity")) or {}
        if note.decision == "admitted" and is_pinned(affinity, terms_of_annotation(self._snapshot, note)):
            return obj
        own = self.plan.placed if self.plan is not None else ()
        if note.waits_for_eviction or any(gang_plan.answer.waits_for_eviction for gang_plan in own):
            return before_evictions(obj, self._snapshot)
        return keep_off_reserved(obj, self._snapshot)

    def fewer_replicas(self, before: Json, after: Json) -> list[str]:
        """Returns a sentence for each template of which fewer pods fit on empty nodes after the policies than
        before.
        """
        if self._snapshot is None:
            return []
        kinds: Sequence[NodeGroup] = cluster_variable(self._snapshot)["nodeKinds"]  # type: ignore[assignment]
        classes = self._snapshot.base.runtime_classes
        return fewer_replicas(before, after, self.workload(after), kinds, classes)

    # The inputs of the policy engine (`PolicyInputs`).

    @property
    def variable_names(self) -> frozenset[str]:
        """The names of Bayplan's variables. Without a cluster there is no `plan`, and `cluster` is empty."""
        names = ("gang", "cluster") if self._context.snapshot is None else ("gang", "cluster", "plan")
        return frozenset(names)

    @property
    def params(self) -> Params:
        """The parameter objects of policies."""
        return self._context.params

    @property
    def now(self) -> float:
        """The time of the decision, in seconds since the epoch."""
        return self._context.environment.now

    @property
    def authorizer(self) -> Authorizer:
        """The CEL variable `authorizer`."""
        return self._context.authorizer

    def variables(self, obj: Json, pod_set: str) -> Mapping[str, Any]:
        """Returns the CEL variables: `gang` and `cluster` for this object, and `plan` of the last
        `make_plan`."""
        return LazyMapping(
            {
                "gang": lambda: self._gang(obj, pod_set),
                "cluster": self._cluster,
                "plan": lambda: self._plan_of(pod_set),
            }
        )

    @property
    def equal_objects(self) -> EqualObjects:
        """The outcomes of policies on equal objects, which are kept as long as the nodes stay the same, and
        the records that `cluster` shows apart from limits.
        """
        snapshot = self._context.snapshot
        if snapshot is None:
            return _WITHOUT_CLUSTER
        return snapshot.base.node_values.get(_EQUAL_OBJECTS, records_of_cluster(snapshot), EqualObjects)

    @property
    def limits_of_equal_objects(self) -> object:
        """The part of `cluster.limits` that is the same for equal objects."""
        snapshot = self._context.snapshot
        return snapshot and shared_limits(snapshot, self._context.request.namespace)

    def variables_of_equal_objects(self, obj: Json, pod_set: str) -> Mapping[str, Any]:
        """Returns `gang` and `cluster` with stand-ins for what differs between equal objects, or changes with
        pods and reservations."""
        snapshot = self._context.snapshot
        return LazyMapping(
            {
                "gang": lambda: _with_stand_ins(self._gang(obj, pod_set)),
                "cluster": lambda: (
                    NO_CLUSTER
                    if snapshot is None
                    else ClusterOfNodes(snapshot, self._context.request.namespace, StandIn)
                ),
            }
        )

    def templates(self, obj: Json) -> Sequence[tuple[Path, str]]:
        """Returns the pod templates that may change, as (path, PodSet name)."""
        return [(template.path, template.pod_set) for template in self.changeable.templates]

    def inlined(self, obj: Json) -> Sequence[Template]:
        """Returns the pods that may change and whose form is not a PodTemplateSpec (`Workload.inlined`)."""
        return self.changeable.inlined

    def new_budget(self) -> CostBudget:
        """Returns a CEL cost budget with the API server's limits, for each run of a policy."""
        return CostBudget(poll=poll_policies)

    def _gang(self, obj: Json, pod_set: str) -> Mapping[str, Any]:
        """Returns the CEL variable `gang`. Only its `podSet` differs between the templates of an object."""
        workload = self.workload(obj)
        remembered = self._gang_read
        if remembered is None or remembered[0] is not workload or remembered[1] is not obj:
            namespace, others = self._context.request.namespace, self._other_members(obj, workload)
            gang = gang_variable(workload, namespace, "", obj, others, self._reserved, self._snapshot)
            remembered = self._gang_read = workload, obj, gang
        return {**remembered[2], "podSet": pod_set}

    def _other_members(self, obj: Json, workload: Workload) -> list[GroupMember]:
        """Returns the pods of the object's PodGroups that other objects create, or that are bound already."""
        namespace = self._context.request.namespace or "default"
        own = list(members(obj, namespace, pod_specs(obj, workload)))
        bound = self._snapshot.pods if self._snapshot is not None else ()
        return other_members(own, self._context.environment.members, bound)

    def _plan_of(self, pod_set: str) -> Mapping[str, Any]:
        if self.plan is None:
            return NO_PLAN
        if self._plan_variable is None:
            self._plan_variable = PlanVariable(self.plan)
        return self._plan_variable.of(pod_set)

    def _cluster(self) -> Mapping[str, Any]:
        return NO_CLUSTER if self._snapshot is None else cluster_variable(self._snapshot)


_STAND_IN = StandIn()
"""Replaces values in `gang`. It is no part of a form, so a policy that copies it has no common effect."""


def _with_stand_ins(gang: Json) -> Json:
    """Returns the variable `gang` with stand-ins for its name, and for the labels and annotations in which
    equal objects may differ.
    """
    metadata = {
        part: {key: _STAND_IN if varies(key) else value for key, value in gang[part].items()}
        for part in ("labels", "annotations")
    }
    return {**gang, **metadata, "name": _STAND_IN}


def _as_noted(workload: Workload, obj: Json) -> Workload:
    """Returns the workload with the amounts that its author stated, if its placement annotation has them."""
    noted = placement_annotation(find(obj, ("metadata", "annotations"))).stated
    return replace(workload, gangs=as_noted(workload.gangs, noted)) if noted else workload
