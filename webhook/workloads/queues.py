"""The queues that a manifest names, and the scheduler that these and the schedulerName imply. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.model.podgroup import PodGroup
from planner.model.schedulers import KAI, RUNAI
from webhook.workloads.fields import Field

KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""The label with a Kueue LocalQueue. Kueue suspends the object, or gates its pods, until it is admitted."""


KAI_QUEUE = "kai.scheduler/queue"
"""The label that names a KAI queue."""


_FOLLOWS = (
    (KUEUE_QUEUE, (), "kueue.x-k8s.io"),
    (KAI_QUEUE, (KAI, RUNAI), "kai.scheduler"),
)
"""Per system: its queue label, its schedulerNames, and the API group of the Topologies that it reads."""


def first_label(labelled: Sequence[Field], key: str) -> str:
    """Returns the first value of a label in the metadata of an object and its templates; "" for none."""
    return next(filter(None, (metadata.get("labels", key).text() for metadata in labelled)), "")


def following(
    groups: tuple[PodGroup, ...], labelled: Sequence[Field], specs: Sequence[Field]
) -> tuple[PodGroup, ...]:
    """Returns the gangs with the API group of the Topologies that their scheduler reads, and with the
    PriorityClass that it takes.

    The scheduler is known by its queue label, or by the pods' schedulerName. `labelled`: the metadata of the
    object and its templates that have labels; `specs`: the PodSpecs of its templates.
    """
    names = {spec.get("schedulerName").text() for spec in specs if spec.has("schedulerName")}
    for queue, schedulers, source in _FOLLOWS:
        if not names.isdisjoint(schedulers) or first_label(labelled, queue):
            # KAI takes the class from this label of the owner or the pod, else from the pod's spec.
            in_specs = (spec.get("priorityClassName").text() for spec in specs)
            scheduler_class = first_label(labelled, "priorityClassName") or next(filter(None, in_specs), "")
            return tuple(replace(group, follows=source, scheduler_class=scheduler_class) for group in groups)
    return groups
