"""CEL functions over workloads and levels: the places of templates, and the meanings of levels' short names.

A *place* is here the position of a template or its metadata in an object, not nodes. A *wish* is the topology
request for some pods: a required and a preferred level, and the level and size of slices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.model.effort.deadline import poll
from planner.model.names import object_of
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
    """`workload.places(object)`: a map for each pod template, with its path, PodSet and topology request.

    `path`: a JSON Pointer to the object that contains `metadata` and `spec`, "" for a Pod. `metadata`,
    `spec`: their current values, {} if missing. `podSet`: "" if one template is for all PodSets. `required`,
    `preferred`, `sliceLevel`, `sliceSize`: the request of its pods or else of their gang, whichever system's
    keys state it; "" and 0 for none. `count`: the pods of this template in one gang; `gpus`: of each pod.
    """
    return _places(obj, _read(obj))


def _read(obj: Json) -> Workload:
    if not isinstance(obj, Mapping):
        raise ValueError("an object is no mapping")
    return read(obj)


def _places(obj: Json, workload: Workload) -> list[Json]:
    first = workload.gangs[0] if workload.gangs else PodGroup("", ())
    # The gangs of an object may have different PodSets: the first gang with the template's PodSet counts.
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
    """Returns the wish of a template's PodSets; levels that they do not state are those of their gang.

    If there are no PodSets, the gang's levels are used only with `always`.
    """
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
    """`kai.places(object)`: a map for each `metadata` in which KAI reads topology keys, with the request to
    write there.

    KAI reads the keys of a gang on the object itself; for Ray, on the groups' pod templates; for a JobSet, on
    the templates of its jobs as well. If each job of a JobSet has a domain of its own, the JobSet itself gets
    no levels, because KAI would apply them to all of its jobs together. KAI reads segments (its word for
    slices) on the workers' template. `path` leads to the metadata; the request is as in `workload.places`.
    `alone`: the names of PodSets with requests of their own that KAI cannot read anywhere.
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
    by_job = kind == "JobSet" and bool(object_of(group.name))  # each of its jobs is a gang
    shared = Constraint() if by_job else group.constraint
    wish = linked[0] if len(linked) == 1 and not by_job else _wish([], shared, always=True)
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
    """Returns the place of the workers' template, with the slices that its pods request; [] if they request
    none.
    """
    return [
        {**worker, "path": worker["path"] + "/metadata", "required": "", "preferred": ""}
        for worker in templates
        if worker["podSet"] in ("worker", "") and worker["sliceLevel"]
    ]


def _job_places(obj: Json, templates: list[Json]) -> list[Json]:
    """Returns the places of a JobSet's job templates, which contain the pod templates."""
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
    """`topology.level(cluster, name, word)`: the label key of the level that a word means in a topology; ""
    if it means none.

    The word is a level's key, its alias (in the Topology object or a scheduler's ConfigMap) or a short name
    ("rack").
    """
    levels = cluster["topologies"].get(topology)
    if not levels or not isinstance(word, str) or not word:
        return ""
    aliases = cluster["aliases"].get(topology, {})
    return level_key(Topology("", tuple(str(level) for level in levels), aliases=aliases), word)


def kueue_queues(gang: Json, params: Json, cluster: Json) -> bool:
    """`kueue.queues(gang, params, cluster)`: whether Kueue decides when the workload starts.

    True if the workload has a label of Kueue, or if its namespace has the default queue (the parameter
    `kueue-topology.queue`) and it names neither a queue nor a scheduler of another system.
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
