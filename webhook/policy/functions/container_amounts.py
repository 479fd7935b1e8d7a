"""CPU and memory of one pod's containers, one resource at a time: the stated and the resulting amounts.

`StatedContainer` is a container as its author wrote it. Amounts are quantities as text ("1500m", "32Gi"), as
they are written into the manifest; they are added and compared as whole cores or bytes (`whole_units`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from planner.model.effort.deadline import poll
from planner.model.errors import Where
from planner.model.quantity import amount, show
from webhook.policy.functions.pods import count, mapping_of, slices, whole

Json = Any
Resource = Literal["cpu", "memory"]
RESOURCES: tuple[Resource, ...] = ("cpu", "memory")


_GIBIBYTE, _MEBIBYTE = 2**30, 2**20


@dataclass(frozen=True, slots=True)
class StatedContainer:
    """A container with the numbers of its GPUs and MIG compute slices, and its own requests and limits.

    `part`: the list that contains it, "containers" or "initContainers". `lasts`: True for a container that
    runs as long as the pod, also a sidecar; False for an ordinary init container.
    """

    part: str
    name: str
    lasts: bool
    gpus: int
    slices: int
    requests: Mapping[str, Json]
    limits: Mapping[str, Json]

    @staticmethod
    def of(part: str, container: Mapping[str, Json], claimed: tuple[int, int]) -> StatedContainer:
        """Returns the container of a manifest. `claimed`: the GPUs and MIG slices of its device claims."""
        resources = mapping_of(container.get("resources"))
        return StatedContainer(
            part,
            container["name"],
            part == "containers" or container.get("restartPolicy") == "Always",
            count(container) + claimed[0],
            slices(container) + claimed[1],
            mapping_of(resources.get("requests")),
            mapping_of(resources.get("limits")),
        )

    @property
    def shares(self) -> bool:
        """Whether the container gets a share of the node, because it requests GPUs or MIG slices."""
        return self.gpus + self.slices > 0


@dataclass(frozen=True, slots=True)
class AmountRules:
    """The rules by which the amounts of one resource are computed.

    `small`: the amount, as text, of a container without GPUs. `per_gpu`, `per_slice`: the share for each GPU
    and each MIG compute slice, in cores or bytes. `allowed`: the maximum of one container in the namespace,
    in cores or GiB. `step`: a number of CPUs is a multiple of this. `limits_first`: a limit takes precedence
    over a request.
    """

    resource: Resource
    small: Json
    per_gpu: int
    per_slice: int
    allowed: int
    step: int
    limits_first: bool


def amounts(containers: Sequence[StatedContainer], rules: AmountRules) -> list[Json]:
    """Returns each container's amount of the resource as text, in the containers' order."""
    poll("policies")
    taken = sum(
        whole_units(_lasting(box, 0, rules), rules) for box in containers if box.lasts and not box.shares
    )
    sharers = sum(box.lasts and box.shares for box in containers)
    lasting = [
        _lasting(box, _share_reduction(taken, sharers, rules), rules) if box.lasts else ""
        for box in containers
    ]
    return [
        text if box.lasts else _ordinary_init(box, later, rules)
        for box, text, later in zip(
            containers, lasting, _later_amounts(containers, lasting, rules), strict=True
        )
    ]


def _later_amounts(
    containers: Sequence[StatedContainer], lasting: Sequence[Json], rules: AmountRules
) -> Sequence[int]:
    """Returns an item for each container: for an init container, the total amount of the lasting containers
    that start after it (sidecars that are listed later, and all of the list `containers`).

    Items of other containers mean nothing. `lasting`: each container's amount as text, "" for an ordinary
    init container.
    """
    counts = [
        whole_units(text, rules) if box.lasts else 0 for box, text in zip(containers, lasting, strict=True)
    ]
    mains = [count if box.part == "containers" else 0 for box, count in zip(containers, counts, strict=True)]
    total = sum(counts)
    return [total - upto + main for upto, main in zip(accumulate(counts), accumulate(mains), strict=True)]


def _share_reduction(taken: int, sharers: int, rules: AmountRules) -> int:
    """Returns by how much the share of each of the `sharers` (a number of containers) is reduced, so that the
    other lasting containers, which have `taken` in total, fit on the node too. In bytes, or in cores rounded
    up.
    """
    if not sharers:
        return 0
    return -(-taken // sharers) if rules.resource == "cpu" else taken // sharers


def _lasting(box: StatedContainer, reduction: int, rules: AmountRules) -> Json:
    """Returns the amount of a container or a sidecar, as text. `reduction`: the reduction of its share."""
    return _stated_or_share(box, _share(box, reduction, rules) if box.shares else rules.small, rules)


def _ordinary_init(box: StatedContainer, later: int, rules: AmountRules) -> Json:
    """Returns an ordinary init container's amount, as text: the stated amount or its share
    (`_stated_or_share`). The share, also of a container without GPUs, is at least `later`: the amount of the
    lasting containers that start after it, in cores or bytes, at most the maximum of the LimitRange. If that
    is 0, the share is at least `rules.small`.

    Kubernetes counts for a pod the larger of the sum of its lasting containers, and each init container with
    the sidecars that started before it. An amount up to `later` therefore does not increase the pod's.
    """
    free = min(later, _bytes_or_cores(rules.allowed, rules))
    spare = written(free, rules) if free else rules.small
    share = _share(box, 0, rules) if box.shares else spare
    return _stated_or_share(
        box, share if whole_units(share, rules) > whole_units(spare, rules) else spare, rules
    )


def _stated_or_share(box: StatedContainer, share: Json, rules: AmountRules) -> Json:
    """Returns the stated amount, else the share. For a request without a limit, returns the larger of the
    request and the share.
    """
    request, limit = stated(box.requests, rules.resource), stated(box.limits, rules.resource)
    if limit == "" and request != "":
        return _whole(request if whole_units(request, rules) >= whole_units(share, rules) else share, rules)
    first, second = (limit, request) if rules.limits_first else (request, limit)
    return _whole(first if first != "" else second if second != "" else share, rules)


def _share(box: StatedContainer, reduction: int, rules: AmountRules) -> Json:
    """Returns a container's share of the node as text, at least a core or a GiB. It is not rounded up, so
    that all shares fit together.
    """
    share = box.gpus * rules.per_gpu + box.slices * rules.per_slice - reduction
    if rules.resource == "memory":
        return f"{max(1, min(share // _GIBIBYTE, rules.allowed))}Gi"
    cores = min(share, rules.allowed)
    return str(max(1, cores - cores % rules.step if cores >= rules.step else cores))


def _bytes_or_cores(allowed: int, rules: AmountRules) -> int:
    return allowed * _GIBIBYTE if rules.resource == "memory" else allowed


def written(count: int, rules: AmountRules) -> str:
    """Returns whole cores or bytes as a quantity, rounded down to the step of CPUs or a MiB."""
    if rules.resource == "cpu":
        return str(count - count % rules.step if count >= rules.step else count)
    return show("memory", count - count % _MEBIBYTE) if count >= _MEBIBYTE else str(count)


def _whole(text: Json, rules: AmountRules) -> Json:
    return whole(text, rules.step) if rules.resource == "cpu" else text


def whole_units(text: Json, rules: AmountRules) -> int:
    """Converts a quantity to whole cores or bytes; 0 for an invalid quantity, which the API server
    refuses.
    """
    try:
        exact = amount(rules.resource, _whole(text, rules), Where(), up=True)
    except ValueError:
        return 0
    return -(-exact // 1000) if rules.resource == "cpu" else exact


def stated(side: Mapping[str, Json], resource: str) -> Json:
    """Returns the amount of a resource in requests or limits (`side`); "" if it is missing or zero.

    An invalid quantity is returned as it is.
    """
    text = side.get(resource, "")
    if text is None or text == "":
        return ""
    try:
        return text if amount(resource, text, Where(), up=True) > 0 else ""
    except ValueError:
        return text
