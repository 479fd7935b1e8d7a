"""Which pod templates of an object may be mended: new ones, and those that an update changes. Pure.

Pods are replaced when the template changes that they were made from. So a template is left as it is where
nobody asked for other pods:
- its object has a controller: that one was asked already, and compares what it made with its own template.
  A ReplicaSet that differs from its Deployment is never found again, and another one is made, for ever;
- an update leaves it as it was: a label, `replicas`, `status` or a finalizer is no wish for other pods;
- its kind lets nobody change it once the object exists.
What policies and plan write into such a template is taken back, whatever they match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.model.errors import InputError
from webhook.jsontools.diff import equal
from webhook.jsontools.path import Path, dotted, find, replaced
from webhook.policy.engine.mutation.mutate import Effect, Mutated
from webhook.wire.request import AdmissionRequest
from webhook.workloads import Template, Workload, pod_templates
from webhook.workloads.keys.annotation_keys import PLACEMENT, RESERVATION

Json = Mapping[str, Any]


_FIELD = 2
"""Steps to the field of the spec that holds templates, `spec.replicatedJobs`; policies write around them."""


@dataclass(frozen=True, slots=True)
class Mendable:
    """The templates (and pods in another form, `inlined`) that may be mended.

    `kept`: where nothing may change. `changed`: an update changed the templates, so that pods are replaced.
    `noted`: where the plan is written all the same, as annotations.
    """

    templates: tuple[Template, ...] = ()
    inlined: tuple[Template, ...] = ()
    kept: tuple[Path, ...] = ()
    changed: bool = False
    noted: tuple[Template, ...] = ()

    def restored(self, before: Json, mutated: Mutated) -> Mutated:
        """What policies made of the object `before`, with what may not change as it was."""
        after = mutated.object
        for path in self.kept:
            value = find(before, path)
            if value is not None and not equal(value, find(after, path)):
                after = replaced(after, path, value)
        if after is mutated.object:
            return mutated
        return replace(mutated, object=after, effects=tuple(self._without_kept(mutated.effects)))

    def _without_kept(self, effects: Iterable[Effect]) -> Iterator[Effect]:
        """The effects less what was taken back."""
        pointers = [_pointer(path) for path in self.kept]
        for effect in effects:
            patch = tuple(
                operation
                for operation in effect.patch
                if not any(f"{operation['path']}/".startswith(pointer) for pointer in pointers)
            )
            if patch:
                yield replace(effect, patch=patch)


def mendable(request: AdmissionRequest, obj: Json, workload: Workload) -> Mendable:
    """What may be mended of `obj`, the object of the request with the templates that it had before."""
    templates = (*workload.templates, *workload.inlined)
    if workload.kind == "Pod":
        return Mendable(workload.templates)
    update = request.operation == "UPDATE"
    if workload.owner_has_templates or (update and workload.template_immutable):
        kept = tuple(dict.fromkeys(template.path[:_FIELD] for template in templates))
        return Mendable(kept=kept, noted=workload.templates if _starts(request, workload) else ())
    if not update or request.old_object is None:
        return Mendable(workload.templates, workload.inlined)
    changed = tuple(_changed(obj, request.old_object, workload.templates))
    kept = tuple(_around(template, changed) for template in templates if template not in changed)
    return Mendable(changed, (), tuple(dict.fromkeys(kept)), changed=bool(changed))


def asks_for_pods(request: AdmissionRequest) -> bool:
    """Whether a request creates its object or changes a pod template of it: then all of it is judged anew."""
    if request.operation != "UPDATE" or request.old_object is None or request.object is None:
        return True
    try:
        templates = pod_templates(request.object)
    except InputError:
        return True
    return any(_changed(request.object, request.old_object, templates))


def _starts(request: AdmissionRequest, workload: Workload) -> bool:
    """Whether the update resumes a Job that never started: annotations of its template may change then, by
    the API server's rule for the scheduling directives of suspended Jobs."""
    old = request.old_object or {}
    suspended = find(old, ("spec", "suspend")) and not workload.suspended
    started = find(old, ("status", "startTime")) or workload.owner_has_templates
    return bool(workload.kind == "Job" and suspended and not started)


REPLACED = {
    "CronJob": "its later jobs are made of it",
    "LeaderWorkerSet": "its groups will be replaced",
    "RayCluster": "pods that it makes from now on are made of it",
    "RayJob": "its next cluster is made of it",
    "RayService": "a new cluster will take the place of the one that runs",
    "ReplicaSet": "pods that it makes from now on are made of it",
}
"""What becomes of an object's pods when its template changes; of all other kinds the pods are replaced."""


def replacement_warning(workload: Workload, may: Mendable, effects: Iterable[Effect]) -> str:
    """What to say of an update whose templates were mended; "" where Bayplan changed nothing of them."""
    if not may.changed:
        return ""
    pointers = tuple(_pointer(template.path) for template in may.templates)
    policies = dict.fromkeys(
        effect.policy
        for effect in effects
        if any(f"{operation['path']}/".startswith(pointers) for operation in effect.patch)
    )
    if not policies:
        return ""
    places = ", ".join(dotted(template.path) for template in may.templates)
    outcome = REPLACED.get(workload.kind, "its pods will be replaced")
    return f"{workload.name}: {outcome}: {places} is new, and was mended by {', '.join(policies)}"


def needs_plan(request: AdmissionRequest, before: Workload, workload: Workload, may: Mendable) -> bool:
    """Whether the gangs of an object may be planned at all; `before`: as it was, for an update.

    An update without a new template is planned where the object had a plan before, so that a gang which is
    scaled holds its place, and where it makes pods from now on. What was there before Bayplan has its place,
    which no plan knows of.
    """
    if request.operation != "UPDATE" or may.templates:
        return True
    return workload.holds and (_was_planned(request.old_object) or begins(before, workload))


def begins(before: Workload, after: Workload) -> bool:
    """Whether an update lets an object make its pods that was suspended, or scaled to none."""
    return bool(after.gangs) and not after.suspended and (before.suspended or not before.gangs)


def _was_planned(old: Json | None) -> bool:
    annotations = find(old or {}, ("metadata", "annotations"))
    return isinstance(annotations, Mapping) and (PLACEMENT in annotations or RESERVATION in annotations)


def _changed(obj: Json, old: Json, templates: tuple[Template, ...]) -> Iterator[Template]:
    """The templates that differ from those of the same name before, and those beside them.

    Beside: in the same field, as the leader's and the workers' of a LeaderWorkerSet, which are one revision.
    """
    former = former_paths(old, templates)
    differing = {
        template.path[:-1]
        for template in templates
        if not equal(find(obj, template.path), find(old, former[template.path]))
    }
    return (template for template in templates if template.path[:-1] in differing)


def former_paths(old: Json, templates: tuple[Template, ...]) -> dict[Path, Path]:
    """Where each template was before: that of its PodSet, or at its own path one whose PodSet is gone; () for
    a new one."""
    try:
        before = pod_templates(old)
    except InputError:  # it was stored before anybody looked at it
        before = templates
    by_name = {template.pod_set: template.path for template in before}
    names = {template.pod_set for template in templates}
    renamed = {template.path for template in before if template.pod_set not in names}
    return {
        template.path: by_name.get(template.pod_set, template.path if template.path in renamed else ())
        for template in templates
    }


def _around(template: Template, changed: tuple[Template, ...]) -> Path:
    """The whole field that holds a template, or the template alone where others in the field may change."""
    field = template.path[:_FIELD]
    return template.path if any(other.path[:_FIELD] == field for other in changed) else field


def _pointer(path: Path) -> str:
    return "".join(f"/{step}" for step in path) + "/"
