"""Determines which pod templates policies and plan may change: new ones, and those an update changes. Pure.

A change of a template replaces the pods that were created from it. A template is therefore left unchanged if
- its object has a controller: the controller's own template was changed already, and the controller compares
  the two. A Deployment does not recognise a ReplicaSet that differs from its template, and creates another
  one, again and again;
- an update does not change it, but only, for example, a label, `replicas`, `status` or a finalizer;
- templates of its kind are immutable.
Changes that policies and plan make to such a template are undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.model.errors import InputError
from planner.model.names import dotted
from webhook.jsontools.diff import equal
from webhook.jsontools.path import Path, find, pointer, replaced
from webhook.policy.engine.mutation.mutate import Effect, Mutated
from webhook.wire.request import AdmissionRequest
from webhook.workloads import Template, Workload, pod_templates
from webhook.workloads.keys.annotation_keys import PLACEMENT, RESERVATION

Json = Mapping[str, Any]

_FIELD = 2
"""Length of the path of the field that contains the templates, for example `spec.replicatedJobs`. This whole
field is restored, because policies also write into it beside the templates.
"""


@dataclass(frozen=True, slots=True)
class Changeable:
    """The templates (and pods in another form, `inlined`) that policies and plan may change.

    `kept`: the paths of fields that must stay as they are. `changed`: the request is an update that changes
    templates, so that pods are replaced. `noted`: templates in which only the plan's annotations may change.
    """

    templates: tuple[Template, ...] = ()
    inlined: tuple[Template, ...] = ()
    kept: tuple[Path, ...] = ()
    changed: bool = False
    noted: tuple[Template, ...] = ()

    def among(self, workload: Workload) -> tuple[Template, ...]:
        """Returns the templates of the object after the policies that the plan may change: those that may
        change and that policies have left, and those that policies have added where nothing is kept.
        """
        places = {template.path for template in (*self.templates, *self.noted)}
        return tuple(
            [template for template in workload.templates if not self.kept or template.path in places]
        )

    def restored(self, before: Json, mutated: Mutated) -> Mutated:
        """Returns the result of the policies with the `kept` fields as they are in `before`."""
        after, kept = mutated.object, list(self.kept)
        for path in self.kept:
            value = find(before, path)
            if value is not None and not equal(value, find(after, path)):
                # A policy may have removed what is around the field: that is restored then.
                while not _has_place(find(after, path[:-1]), path[-1]):
                    path = path[:-1]
                kept.append(path)
                after = replaced(after, path, find(before, path))
        if after is mutated.object:
            return mutated
        return replace(mutated, object=after, effects=tuple(self._without(kept, mutated.effects)))

    @staticmethod
    def _without(kept: Iterable[Path], effects: Iterable[Effect]) -> Iterator[Effect]:
        """Yields the effects without the operations on these fields."""
        prefixes = tuple(map(_prefix, kept))
        for effect in effects:
            patch = tuple(
                operation for operation in effect.patch if not f"{operation['path']}/".startswith(prefixes)
            )
            if patch:
                yield replace(effect, patch=patch)


def changeable_templates(request: AdmissionRequest, obj: Json, workload: Workload) -> Changeable:
    """Returns what may change in `obj`: the object of the request, with the stored templates if the request
    repeats the stored object's manifest (`reapply`)."""
    templates = (*workload.templates, *workload.inlined)
    if workload.kind == "Pod":
        return Changeable(workload.templates)
    update = request.operation == "UPDATE"
    if workload.owner_has_templates or (update and workload.template_immutable):
        kept = tuple(dict.fromkeys(template.path[:_FIELD] for template in templates))
        return Changeable(kept=kept, noted=workload.templates if _starts(request, workload) else ())
    if not update or request.old_object is None:
        return Changeable(workload.templates, workload.inlined)
    changed = tuple(_changed(obj, request.old_object, workload.templates))
    kept = tuple(_around(template, changed) for template in templates if template not in changed)
    return Changeable(changed, (), tuple(dict.fromkeys(kept)), changed=bool(changed))


def asks_for_pods(request: AdmissionRequest) -> bool:
    """Returns whether a request creates its object or changes one of its pod templates."""
    if request.operation != "UPDATE" or request.old_object is None or request.object is None:
        return True
    try:
        templates = pod_templates(request.object)
    except InputError:
        return True
    return any(_changed(request.object, request.old_object, templates))


def _starts(request: AdmissionRequest, workload: Workload) -> bool:
    """Returns whether the update resumes a Job without an owner that never started: the API server then
    allows changes of its template's annotations (scheduling directives of suspended Jobs, KEP-2926).
    """
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
"""Text by kind for what happens if a template changes; the pods of all other kinds are replaced."""


def replacement_warning(workload: Workload, changeable: Changeable, effects: Iterable[Effect]) -> str:
    """Returns the warning that an update's new templates were changed by policies or plan; "" if not."""
    if not changeable.changed:
        return ""
    prefixes = tuple(_prefix(template.path) for template in changeable.templates)
    policies = dict.fromkeys(
        effect.policy
        for effect in effects
        if any(f"{operation['path']}/".startswith(prefixes) for operation in effect.patch)
    )
    if not policies:
        return ""
    places = ", ".join(dotted(template.path) for template in changeable.templates)
    outcome = REPLACED.get(workload.kind, "its pods will be replaced")
    return f"{workload.name}: {outcome}: {places} is new, and was changed by {', '.join(policies)}"


def needs_plan(
    request: AdmissionRequest, before: Workload, workload: Workload, changeable: Changeable
) -> bool:
    """Returns whether the gangs of an object are to be planned. `before`: the workload before an update.

    After an update that changes no template, the gangs are planned if the object had a plan (a gang that is
    scaled up needs more room), or if the update makes it create pods (`starts_pods`). Otherwise its pods may
    run since before Bayplan was installed: they have nodes already and need no plan.
    """
    if request.operation != "UPDATE" or changeable.templates:
        return True
    return workload.holds and (_was_planned(request.old_object) or starts_pods(before, workload))


def starts_pods(before: Workload, after: Workload) -> bool:
    """Returns whether an update resumes a suspended object, or scales it up from no pods."""
    return bool(after.gangs) and not after.suspended and (before.suspended or not before.gangs)


def _was_planned(old: Json | None) -> bool:
    annotations = find(old or {}, ("metadata", "annotations"))
    return isinstance(annotations, Mapping) and (PLACEMENT in annotations or RESERVATION in annotations)


def _changed(obj: Json, old: Json, templates: tuple[Template, ...]) -> Iterator[Template]:
    """Yields the templates that an update changes, and all templates that have the same parent field: leader
    and worker template of a LeaderWorkerSet form one revision.
    """
    former = former_paths(old, templates)
    differing = {
        template.path[:-1]
        for template in templates
        if not equal(find(obj, template.path), find(old, former[template.path]))
    }
    return (template for template in templates if template.path[:-1] in differing)


def former_paths(old: Json, templates: tuple[Template, ...]) -> dict[Path, Path]:
    """Returns the path of each template in the object before an update, by its path in the new object.

    It is the path of the template with the same PodSet name, or the same path if the PodSet there was
    renamed; () for a new template.
    """
    try:
        before = pod_templates(old)
    except InputError:  # it was stored before Bayplan was installed
        before = templates
    by_name = {template.pod_set: template.path for template in before}
    names = {template.pod_set for template in templates}
    renamed = {template.path for template in before if template.pod_set not in names}
    return {
        template.path: by_name.get(template.pod_set, template.path if template.path in renamed else ())
        for template in templates
    }


def _around(template: Template, changed: tuple[Template, ...]) -> Path:
    """Returns the path of the field that contains a template, or of the template alone if another template in
    that field may change.
    """
    field = template.path[:_FIELD]
    return template.path if any(other.path[:_FIELD] == field for other in changed) else field


def _has_place(holder: Any, step: str | int) -> bool:
    """Returns whether a value can be written at this step of a path."""
    if isinstance(step, int):
        return isinstance(holder, list) and step < len(holder)
    return isinstance(holder, Mapping)


def _prefix(path: Path) -> str:
    """Returns the path as a JSON pointer, with a final slash so that it is a prefix of whole names only."""
    return pointer(path) + "/"
