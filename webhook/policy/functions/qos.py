"""CEL functions that make GPU pods Guaranteed: the cpu and memory of each container.

Plain JSON in and out, except for `cluster.nodeKinds`. If the pod states a resource in its own amounts
(`spec.resources`), the containers share it, and request and limit are made equal there, not in the
containers. If the pod with raised requests would fit none of the nodes that could take it as written, the
resource is left unchanged, and `qos.unraised` says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import orjson

from planner.manifests.pods.injected import injected, with_injected
from planner.manifests.pods.pod import AS_SENT, effective_request, spec_content, spec_of
from planner.model.errors import Where
from planner.model.pod import PodShape
from planner.model.quantity import amount, show
from planner.model.resources import Resources
from planner.node.node_groups import NodeGroup, could_take
from webhook.cel import Function
from webhook.policy.functions.admitted_shape import admitted_shape
from webhook.policy.functions.container_amounts import (
    RESOURCES,
    AmountRules,
    Resource,
    StatedContainer,
    amounts,
    stated,
    whole_units,
    written,
)
from webhook.policy.functions.gpu_shares import GpuPortion, share_of
from webhook.policy.functions.pods import mapping_of, whole

Json = Any


PARTS = ("initContainers", "containers")


_UNBOUNDED = 10**6
"""Maximum cores or GiB of a container without a LimitRange: more than any node has."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One pod that is to become Guaranteed, with the facts about its cluster.

    `kinds`: all nodes, grouped by equal properties; `able`: those that could take the pod as written.
    `share`: the share of one GPU. `ranges`: the namespace's LimitRanges for containers.
    """

    spec: Mapping[str, Json]
    containers: Sequence[StatedContainer]
    shape: PodShape | None
    kinds: Sequence[NodeGroup]
    able: Sequence[NodeGroup]
    share: GpuPortion | None
    rules: Mapping[str, Json]
    ranges: Sequence[Mapping[str, Json]]

    @property
    def overhead(self) -> Resources:
        """The overhead of the pod's RuntimeClass, which counts on the node and not for the QoS class."""
        return self.shape.overhead if self.shape is not None else {}


@dataclass(frozen=True, slots=True)
class _Amounts:
    """The amounts to write. `by_resource`: one amount for each container, in the order of `_Task.containers`;
    `of_pod`: the pod's own amount.

    `kept`: the resources that stay as written, because the pod with raised requests fits no node in
    `_Task.able`; by resource, the raised request in millicores or bytes.
    """

    by_resource: Mapping[Resource, Sequence[Json]]
    of_pod: Mapping[Resource, Json]
    kept: Mapping[Resource, int]


def guaranteed(pod: Json, around: Json) -> dict[str, Json]:
    """`qos.guaranteed(pod, {nodeKinds, claims, ranges, rules, runtimeClasses})`: the amounts that make a pod
    Guaranteed.

    `nodeKinds`, `runtimeClasses`: of `cluster`. `claims`: from `devices.claimed`. `ranges`: the namespace's
    LimitRanges in `cluster.limits`. `rules`: the parameters of the policy `guaranteed-qos`, which calls this
    function.

    `containers`: for each container `list`, `name` and `amounts`, which apply to requests and limits alike.
    `pod`: the amounts of the pod's own resources, {} if it has none. A resource without an amount is left as
    it is.
    """
    task, chosen = _answer(pod, around)
    by_others = {container["name"] for container in injected(*_spec_and_annotations(pod))}
    return {
        "containers": [
            {
                "list": box.part,
                "name": box.name,
                "amounts": {name: texts[index] for name, texts in chosen.by_resource.items()},
            }
            for index, box in enumerate(task.containers)
            if box.name not in by_others
        ],
        "pod": dict(chosen.of_pod),
    }


def unraised(pod: Json, around: Json) -> list[str]:
    """`qos.unraised(pod, …)`: a sentence for each resource whose requests stay below the limits: why, and
    what would work. Same arguments as `qos.guaranteed`.
    """
    task, chosen = _answer(pod, around)
    asked = task.shape.requests_without_overhead if task.shape else {}
    sentences = []
    for name, wanted in chosen.kept.items():
        overhead = task.overhead.get(name, 0)
        largest = max(kind.allocatable.get(name, 0) for kind in task.able) - overhead
        beside = " beside the overhead of its RuntimeClass" if overhead else ""
        sentences.append(
            f"to be Guaranteed it would ask for {show(name, wanted)} {name}, and the most that any node has "
            f"which could take it is {show(name, largest)}{beside}: its requests stay at "
            f"{show(name, asked.get(name, 0))}. What would work: limits of at most {show(name, largest)} "
            f"{name} together"
        )
    return sentences


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """The node kinds of a cluster as a part of a cache key. They are compared by identity, because all
    decisions on the same nodes share one list."""

    groups: Sequence[NodeGroup]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kinds) and other.groups is self.groups

    def __hash__(self) -> int:
        return id(self.groups)


def _answer(pod: Json, around: Mapping[str, Json]) -> tuple[_Task, _Amounts]:
    """Returns the pod as it was read, and the amounts to write.

    Cached by content: `qos.guaranteed` and `qos.unraised` are called for the same pod, policies run again
    after others have changed it, and the pods of a controller are alike. Without the cache, this takes an
    eighth of the time of the decision on a pod.
    """
    spec = with_injected(*_spec_and_annotations(pod))
    content = spec_content(spec)
    classes = around.get("runtimeClasses", {})
    own_class = {name: entry for name, entry in classes.items() if name == spec.get("runtimeClassName")}
    kinds, others = around["nodeKinds"], [around["claims"], around["ranges"], around["rules"], own_class]
    try:
        text = orjson.dumps(others, None, AS_SENT)
    except TypeError:  # something that is not plain JSON, whose text could equal that of another value
        content = None
    if content is None:
        return _chosen(_task(spec, kinds, *others))
    return _answers_on(_Kinds(kinds))(content, text)


def _spec_and_annotations(pod: Json) -> tuple[Mapping[str, Json], Mapping[str, Json]]:
    fields = mapping_of(pod)
    return mapping_of(fields.get("spec")), mapping_of(mapping_of(fields.get("metadata")).get("annotations"))


# The nodes change every few seconds, and namespaces may have different settings for the same nodes. The kinds
# of 5,000 nodes that hosts pin pods to take 2 MB, so few former ones are kept.
@lru_cache(maxsize=4)
def _answers_on(kinds: _Kinds) -> Callable[[bytes, bytes], tuple[_Task, _Amounts]]:
    # A decision needs entries for two states of a pod: before and after other policies changed it. 256
    # entries of at most 8 KiB and a few containers are a few MB.
    return lru_cache(maxsize=256)(partial(_computed_answer, kinds.groups))


def _computed_answer(kinds: Sequence[NodeGroup], content: bytes, others: bytes) -> tuple[_Task, _Amounts]:
    return _chosen(_task(spec_of(content), kinds, *orjson.loads(others)))


def _task(
    spec: Mapping[str, Json],
    kinds: Sequence[NodeGroup],
    device_claims: Sequence[Mapping[str, Json]],
    ranges: Sequence[Mapping[str, Json]],
    rules: Mapping[str, Json],
    runtime_class: Mapping[str, Mapping[str, Json]],
) -> _Task:
    claims = _claims(device_claims, kinds)
    containers = [
        StatedContainer.of(part, container, claims.get(container["name"], (0, 0)))
        for part in PARTS
        for container in _list(spec.get(part))
        if isinstance(container, Mapping) and isinstance(container.get("name"), str)
    ]  # without containers that have no name: these cannot be changed
    shape = admitted_shape(spec, runtime_class)
    claimed = sum(gpus for gpus, _ in claims.values())
    return _Task(
        spec,
        containers,
        shape,
        kinds,
        could_take(kinds, shape, claimed) if shape else (),
        share_of(shape, claimed, kinds) if shape else None,
        rules,
        [bounds for bounds in ranges if bounds["type"] == "Container"],
    )


def _claims(claims: Iterable[Mapping[str, Json]], kinds: Sequence[NodeGroup]) -> dict[str, tuple[int, int]]:
    """Returns the GPUs and MIG slices that claims give, by container name: each claim counts for the first
    container that uses it.

    A claim for all GPUs of a node (allocationMode All) counts as the GPUs of the largest known node.
    """
    every = max((kind.gpus for kind in kinds), default=0) or 1
    by_container: dict[str, tuple[int, int]] = {}
    for claim in claims:
        if claim["containers"]:
            name = claim["containers"][0]
            gpus, parts = by_container.get(name, (0, 0))
            devices = every if claim["all"] else claim["gpus"]
            by_container[name] = (gpus + devices, parts + claim["slices"])
    return by_container


def _rules(task: _Task, resource: Resource) -> AmountRules:
    rules = task.rules
    unit = 1000 if resource == "cpu" else 2**30
    allowed = [bounds["max"][resource] // unit for bounds in task.ranges if resource in bounds["max"]]
    share = None if task.share is None else getattr(task.share, resource)
    return AmountRules(
        resource,
        rules["small"][resource],
        _count(resource, rules["perGpu"][resource]) if share is None else share,
        _count(resource, rules["perSlice"][resource]),
        min(allowed, default=_UNBOUNDED),
        max(1, rules["threadsPerCore"]),
        rules["direction"] != "cut",
    )


def _count(resource: Resource, text: Json) -> int:
    """Converts a quantity to whole cores or bytes, rounded down."""
    count = amount(resource, text, Where(), up=False)
    return count // 1000 if resource == "cpu" else count


def _chosen(task: _Task) -> tuple[_Task, _Amounts]:
    """Returns the pod and its amounts, without resources that no node could provide.

    Tries in this order: all amounts; without cpu; without memory; without both. Returns the first with which
    the pod fits a node, or all amounts if it fits with none.
    """
    own = {name: side for name in RESOURCES if (side := _pod_amounts(task.spec, name)) is not None}
    texts = {name: amounts(task.containers, _rules(task, name)) for name in RESOURCES if name not in own}
    full = _Amounts(texts, _of_pod(task, own, texts), {})
    wanted = _effective(task, full)
    if wanted is None or not task.able or _fits(task, wanted):
        return task, full
    for left_out in ((RESOURCES[0],), (RESOURCES[1],), RESOURCES):
        rest = replace(
            full,
            by_resource={name: row for name, row in texts.items() if name not in left_out},
            of_pod={name: text for name, text in full.of_pod.items() if name not in left_out},
            kept={name: wanted.get(name, 0) for name in left_out},
        )
        less = _effective(task, rest)
        if less is not None and _fits(task, less):
            return task, rest
    return task, full


def _fits(task: _Task, requests: Mapping[str, int]) -> bool:
    total = Counter(requests) + Counter(task.overhead)
    return any(kind.has_amounts(total) for kind in task.able)


def _pod_amounts(spec: Mapping[str, Json], resource: Resource) -> tuple[Json, Json] | None:
    """Returns the pod's own request and limit ("" for none) of a resource; None if it states neither."""
    resources = mapping_of(spec.get("resources"))
    request = stated(mapping_of(resources.get("requests")), resource)
    limit = stated(mapping_of(resources.get("limits")), resource)
    return None if request == "" and limit == "" else (request, limit)


def _of_pod(
    task: _Task, own: Mapping[Resource, tuple[Json, Json]], texts: Mapping[Resource, Sequence[Json]]
) -> dict[Resource, Json]:
    """Returns the pod's own amounts (`spec.resources`), which apply to requests and limits; {} if it has
    none.

    A pod with own amounts is Guaranteed by these alone. If it states only one of the two resources, the other
    is therefore set to the containers' total.
    """
    if not own:
        return {}
    of_pod: dict[Resource, Json] = {}
    for name in RESOURCES:
        rules = _rules(task, name)
        if name in own:
            of_pod[name] = _equal_pod_amount(task, own[name], rules)
        else:
            total = _effective(task, _Amounts({name: texts[name]}, {}, {})) or {}
            of_pod[name] = _rounded_up(name, total.get(name, 0))
    return {name: text for name, text in of_pod.items() if text != ""}


def _rounded_up(resource: Resource, total: int) -> str:
    """Returns an amount (millicores or bytes) as a short quantity, memory rounded up to a MiB; "" for 0."""
    if not total:
        return ""
    return show(resource, total if resource == "cpu" else -(-total // 2**20) * 2**20)


def _equal_pod_amount(task: _Task, own: tuple[Json, Json], rules: AmountRules) -> Json:
    """Returns one amount for the pod's own request and limit.

    For a request without a limit, it is at least the sum of the containers' limits and shares of the node.
    """
    request, limit = own
    if limit != "":
        text = limit if rules.limits_first or request == "" else request
    else:
        boxes = [replace(box, requests={}) for box in task.containers if box.lasts]
        total = sum(whole_units(text, rules) for text in amounts(boxes, rules))
        text = request if whole_units(request, rules) >= total else written(total, rules)
    return whole(text, rules.step) if rules.resource == "cpu" else text


def _effective(task: _Task, chosen: _Amounts) -> dict[str, int] | None:
    """Returns the requests of the pod with these amounts, without the overhead of its RuntimeClass, which is
    no part of what the pod states; None if the pod is malformed.
    """
    if task.shape is None:
        return None
    try:
        return effective_request({**_spec_with(task, chosen), "overhead": {}}, Where())
    except ValueError:
        return None


def _spec_with(task: _Task, chosen: _Amounts) -> dict[str, Json]:
    by_name = {
        (box.part, box.name): {name: texts[index] for name, texts in chosen.by_resource.items()}
        for index, box in enumerate(task.containers)
    }
    spec = dict(task.spec)
    for part in PARTS:
        spec[part] = [
            _with_amounts(container, by_name.get((part, container.get("name", "")), {}))
            for container in _list(task.spec.get(part))
        ]
    return _with_amounts(spec, chosen.of_pod)


def _with_amounts(holder: Mapping[str, Json], chosen: Mapping[Any, Json]) -> dict[str, Json]:
    """Returns a container, or a pod's spec, with these requests and limits."""
    if not chosen:
        return dict(holder)
    resources = mapping_of(holder.get("resources"))
    sides = {side: {**mapping_of(resources.get(side)), **chosen} for side in ("requests", "limits")}
    return {**holder, "resources": {**resources, **sides}}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


QOS_FUNCTIONS: Mapping[str, Function] = {
    "qos.guaranteed": Function(guaranteed, 2, 2),
    "qos.unraised": Function(unraised, 2, 2),
}
"""Name in CEL → the function, the fewest and the most arguments."""
