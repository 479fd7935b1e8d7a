"""Removes from pod templates the keys that mark pods as planned, if admission did not write them. Pure.

A pod is not planned by itself if its template has the plan of its gang, or if labels that its controller sets
say that it belongs to a gang. Any tenant can write such keys into a template, so they are removed unless
admission wrote them, or the controller of this kind sets them:

    a Deployment with replicas: 0 and bayplan.dev/placement in its template     the annotation is removed
    a Job that is not Indexed, with the label of an index in its template       the label is removed
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from planner.model.effort.deadline import poll
from webhook.admission.updates.unchanged import former_paths
from webhook.jsontools.path import Path, find, replaced
from webhook.placement.pod_gang import INDEX, REPLICAS
from webhook.workloads import Template, Workload
from webhook.workloads.keys.annotation_keys import GANG_OF, PLACEMENT, POD_SET, RESERVATION

Json = Mapping[str, Any]

OWN = frozenset((PLACEMENT, RESERVATION, POD_SET, GANG_OF))
"""The annotations that admission writes into pod templates."""

OF_A_GANG = frozenset((INDEX, *(label for _, *labels in REPLICAS for label in labels)))
"""The labels and annotations that controllers write onto pods of Indexed Jobs, and onto pods of the replicas
of JobSets and LeaderWorkerSets."""

_COMPLETION_MODE: Mapping[str, Path] = {
    "Job": ("spec", "completionMode"),
    "CronJob": ("spec", "jobTemplate", "spec", "completionMode"),
}


def without_foreign_plan(obj: Json, old: Json | None, templates: tuple[Template, ...]) -> Json:
    """Returns an object for which no plan was made, without the keys `OWN` in these templates.

    `old`: the object before an update. A key that a template has in `old` gets its value from there, because
    admission wrote that: an update that changes only an image leaves the gangs and their plan as they are,
    and a rollback may bring back the keys of an older plan.
    """
    paths = former_paths(old, templates) if old is not None and templates else {}

    def stored(template: Template, key: str, value: Any) -> Any:
        if key not in OWN:
            return value
        former = paths.get(template.path)
        place = (*template.metadata_path[len(template.path) :], "annotations", key)
        return find(old, (*former, *place)) if former else None

    return _with_entries(obj, templates, ("annotations",), stored)


def without_gang_labels(obj: Json, workload: Workload) -> Json:
    """Returns a Job or CronJob that is not Indexed without the keys `OF_A_GANG` in its template."""
    mode = _COMPLETION_MODE.get(workload.kind)
    if mode is None or find(obj, mode) == "Indexed":
        return obj

    def other(_: Template, key: str, value: Any) -> Any:
        return None if key in OF_A_GANG else value

    return _with_entries(obj, workload.templates, ("annotations", "labels"), other)


def _with_entries(
    obj: Json,
    templates: Iterable[Template],
    fields: Iterable[str],
    entry: Callable[[Template, str, Any], Any],
) -> Json:
    """Returns the object with each entry (key, value) of these metadata fields of its templates replaced by
    what `entry` returns for it; None removes the entry.
    """
    for template in templates:
        for field in fields:
            poll("reading")
            path = (*template.metadata_path, field)
            entries = find(obj, path)
            if not template.path or not isinstance(entries, Mapping):
                continue
            values = {key: entry(template, key, value) for key, value in entries.items()}
            # An entry that was null before is not removed.
            kept = {key: value for key, value in values.items() if value is not None or entries[key] is None}
            if kept != entries:
                obj = replaced(obj, path, kept)
    return obj
