"""Functions of policies over workloads and levels: where templates lie, what a level's short name means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.model.deadline import poll
from planner.model.podgroup import Constraint, PodGroup, PodSet
from planner.model.schedulers import KUEUE
from planner.model.topology import Topology
from planner.request.levels import level_key
from webhook.cel import Function
from webhook.jsontools.path import pointer
from webhook.policy.functions.schedulers import has_queue
from webhook.workloads import Workload, read

Json = Any


def places(obj: Json) -> list[Json]:
    """`workload.places(object)`: each pod template with its path (a JSON Pointer), PodSet and wish.

    `path` leads to what holds `metadata` and `spec`, "" for a Pod; `metadata` and `spec` are those that stand
    there, {} for none. `podSet` is "" where one template serves all PodSets. `required`, `preferred`,
    `sliceLevel` and `sliceSize` are what its pods ask for, by themselves or as part of their gang, in
    whichever system's keys; "" and 0 for nothing. `count` pods of it belong to one gang, with `gpus` each.
    """
    return _places(obj, _read(obj))


def _read(obj: Json) -> Workload:
    if not isinstance(obj, Mapping):
        raise ValueError("an object is no mapping")
    return read(obj)


def _places(obj: Json, workload: Workload) -> list[Json]:
    first = workload.gangs[0] if workload.gangs else PodGroup("", ())
    # Replicas of one object may be made of other templates: the first gang with a PodSet of the name counts.
    sets_by_name = {"": (first, list(first.pod_sets))}
    for gang in workload.gangs:
        for pod_set in gang.pod_sets:
            sets_by_name.setdefault(pod_set.name, (gang, [pod_set]))
    places = []
    for template in workload.templates:
        poll("policies")
        group, sets = sets_by_name.get(template.pod_set, (first, []))
        node: Any = obj
        for step in template.path:
            node = node[step]
        places.append(
            {
                "path": pointer(template.path),
                "podSet": template.pod_set,
                "metadata": node.get("metadata") or {},
                "spec": node.get("spec") or {},
                "count": sum(pod_set.count for pod_set in sets),
                "gpus": max((pod_set.shape.gpus for pod_set in sets), default=0),
                **_wish(sets, group.constraint),
            }
        )
    return places


def _wish(sets: list[PodSet], gang: Constraint, *, always: bool = False) -> dict[str, Json]:
    own = sets[0].constraint if sets else Constraint()
    sliced = next((pod_set.constraint for pod_set in sets if pod_set.constraint.slice_level), own)
    gang = gang if sets or always else Constraint()
    return {
        "required": own.required or gang.required,
        "preferred": own.preferred or gang.preferred,
        "sliceLevel": sliced.slice_level,
        "sliceSize": sliced.slice_size,
    }


def kai_places(obj: Json) -> list[Json]:
    """`kai.places(object)`: each `metadata` where KAI reads topology keys, with the wish that belongs there.

    On the object itself for its gang; on the group templates of Ray; on the templates of a JobSet's jobs as
    well, and on these alone where each job has a domain of its own: what stands on a JobSet KAI takes for all
    of its jobs together. Segments have a place of their own, the workers' template. `path` leads to the
    metadata; wishes are as in `workload.places`. `alone`: the names of PodSets that have wishes of their own
    for which KAI has no place.
    """
    workload = _read(obj)
    every = _places(obj, workload)
    kind = obj.get("kind")
    if str(kind).startswith("Ray"):
        return [
            {**place, "path": place["path"] + "/metadata", **_NO_SEGMENTS, "alone": []} for place in every
        ]
    linked = [place for place in every if place["gpus"]] or every
    group = next(iter(workload.gangs), PodGroup("", ()))
    shared = Constraint() if group.joint else group.constraint  # each job in a domain of its own
    wish = linked[0] if len(linked) == 1 and not group.joint else _wish([], shared, always=True)
    top = {
        "path": "/metadata",
        "podSet": "",
        "metadata": obj.get("metadata") or {},
        **{key: wish[key] for key in ("required", "preferred")},
        **_NO_SEGMENTS,
    }
    segments = _segment_places(linked) if kind in _SEGMENTED else []
    jobs = _job_places(obj, every) if kind == "JobSet" else []
    one_place = kind == "JobSet" or len(linked) == 1
    own = [
        pod_set.name
        for pod_set in group.pod_sets
        if pod_set.constraint.required or pod_set.constraint.preferred
    ]
    return [{**place, "alone": [] if one_place else own} for place in (top, *segments, *jobs)]


def _segment_places(templates: list[Json]) -> list[Json]:
    """The workers' template, where segments are asked for."""
    return [
        {**worker, "path": worker["path"] + "/metadata", "required": "", "preferred": ""}
        for worker in templates
        if worker["podSet"] in ("worker", "") and worker["sliceLevel"]
    ]


def _job_places(obj: Json, templates: list[Json]) -> list[Json]:
    """The templates of a JobSet's jobs, above those of their pods."""
    return [
        {
            **place,
            "path": place["path"].removesuffix("/spec/template") + "/metadata",
            "metadata": metadata,
            **_NO_SEGMENTS,
        }
        for place, metadata in zip(templates, _job_metadata(obj), strict=False)
    ]


_NO_SEGMENTS = {"sliceLevel": "", "sliceSize": 0}


_SEGMENTED = ("PyTorchJob", "LeaderWorkerSet")
"""The kinds that KAI cuts into segments, by annotations of their workers' template (KAI-Scheduler d5bc503a,
pytorch_grouper.go `getSegmentSize`, lws_grouper.go `getSegmentTopologyConstraints`)."""


def _job_metadata(obj: Json) -> list[Json]:
    jobs = (obj.get("spec") or {}).get("replicatedJobs") or []
    return [job["template"].get("metadata") or {} for job in jobs]


def level(cluster: Json, topology: Json, word: Json) -> str:
    """`topology.level(cluster, name, word)`: the label key that a word means in a topology, "" for none.

    A word is a level's key, its alias (KAI's, or a level's name in its ConfigMap) or a short name ("rack").
    """
    levels = cluster["topologies"].get(topology)
    if not levels or not isinstance(word, str) or not word:
        return ""
    aliases = cluster["aliases"].get(topology, {})
    return level_key(Topology("", tuple(str(level) for level in levels), aliases=aliases), word)


def kueue_queues(gang: Json, params: Json, cluster: Json) -> bool:
    """`kueue.queues(gang, params, cluster)`: whether a workload is for Kueue to start.

    It is where it carries a label of Kueue's, or where its namespace has the default queue
    (`kueue-topology.queue`) and it names neither a queue nor a scheduler of another system.
    """
    labels = gang["labels"]
    if any(name.startswith("kueue.x-k8s.io/") for name in labels):
        return True
    data = (params or {}).get("data") or {}
    switched_on = str(data.get("kueue-topology.enabled", "true")).lower() != "false"
    default = str(data.get("kueue-topology.queue") or "") if switched_on else ""
    if not default or gang["schedulers"] or any(name in labels for name in _OTHER_QUEUES):
        return False
    return has_queue(cluster, params, KUEUE, f"{gang['namespace']}/{default}")


_OTHER_QUEUES = ("kai.scheduler/queue", "runai/queue")


WORKLOAD_FUNCTIONS: Mapping[str, Function] = {
    "workload.places": Function(places, 1, 1),
    "kueue.queues": Function(kueue_queues, 3, 3),
    "kai.places": Function(kai_places, 1, 1),
    "topology.level": Function(level, 3, 3),
}
"""Name in CEL → the function, the fewest and the most arguments."""
