"""Which gangs the pods of an object form if its annotations, or a gang of several objects, say so. Pure."""

from __future__ import annotations

from dataclasses import replace

from planner.model.podgroup import CountField
from webhook.workloads.layouts.layout import NO_FIELD, PodSetTemplate, WorkloadLayout, one_by_one
from webhook.workloads.options import GANG_SIZE, Options
from webhook.workloads.shared_gangs.pod_groups import MAIN, subgroup


def grouped(
    layout: WorkloadLayout, chosen: Options, *, loose: bool, together: bool, is_part: bool
) -> WorkloadLayout:
    """Returns the layout with the gangs that the object's pods form: each pod alone if `loose`, all of them
    if they start `together`, or their parts in a gang of several objects."""
    if loose:
        layout = one_by_one(layout.templates[0])
    if is_part:
        return _of_parts(layout)
    return _as_one(layout, chosen.gang_size) if together else layout


def _of_parts(layout: WorkloadLayout) -> WorkloadLayout:
    """Returns all pods of an object as one gang, for a gang of several objects: its PodSets have the names of
    their parts in that gang. The number of a part's pods is in no single field."""

    def by_part(template: PodSetTemplate) -> PodSetTemplate:
        part = subgroup(template.metadata)
        return replace(template, pod_set=template.pod_set if part == MAIN else part, count_field=NO_FIELD)

    templates = tuple(map(by_part, layout.templates))
    gang = tuple(template for template in templates if template.count)
    gangs = (gang,) if gang else ()
    return replace(layout, templates=templates, gangs=gangs, indexed=False, loose=False, unplanned=0)


def _as_one(layout: WorkloadLayout, size: int | None) -> WorkloadLayout:
    """Returns the layout of pods that are annotated as a gang: one gang of `size` pods, by default all."""
    # The kinds that may be annotated so (Deployment, ReplicaSet, StatefulSet) have a single PodSet.
    field = CountField(("metadata", "annotations", GANG_SIZE))
    templates = [
        replace(pod_set_template, count=size, count_field=field) if size else pod_set_template
        for pod_set_template in layout.templates
        if pod_set_template.count
    ]
    gangs = (tuple(templates),) if templates else ()
    return replace(layout, gangs=gangs, indexed=False, warnings=(), unplanned=0)
