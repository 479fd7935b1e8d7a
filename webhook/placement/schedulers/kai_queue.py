"""Warns, when gangs are applied, if they request more than KAI lets their queue use. Pure.

KAI never starts a gang that requests
- more GPUs than the queue's limit
- more of any resource than the queue's quota, if the gang is non-preemptible; default queues have quotas of 0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model import quantity
from planner.model.podgroup import PodGroup
from planner.model.schedulers import GPU, QueueBound
from planner.request.created_pods import as_admitted
from webhook.placement.schedulers.kai_preemption import PREEMPTIBILITY, is_preemptible
from webhook.workloads import Workload


def within_kai_queue(workload: Workload, obj: Mapping[str, Any], snapshot: Snapshot) -> Workload:
    """Returns the workload with a warning for each gang that KAI never starts in its queue.

    The gang is not refused, because limit and quota can change at any time."""
    seen = snapshot.base.schedulers
    queue = workload.kai_queue or workload.queue
    checks: list[Callable[[PodGroup], str]] = []
    if queue in seen.gpu_limits:
        checks.append(lambda group: _above_limit(group, queue, seen.gpu_limits[queue]))
    if queue in seen.quotas:
        stated = _stated_preemptibility(obj)
        checks.append(lambda group: _above_quota(group, queue, seen.quotas[queue], snapshot, stated))
    if not checks:
        return workload

    def with_warnings(group: PodGroup) -> PodGroup:
        warnings = tuple(filter(None, (check(group) for check in checks)))
        return replace(group, warnings=(*group.warnings, *warnings)) if warnings else group

    return replace(workload, gangs=tuple(map(with_warnings, workload.gangs)))


def _above_limit(group: PodGroup, queue: str, bound: QueueBound) -> str:
    limit, _ = bound
    if group.gpus <= limit:
        return ""
    whose = _whose(bound, queue, "limit")
    return (
        f"asks for {group.gpus} GPUs, and KAI's queue {queue} may use {limit:g}{whose}: KAI does not "
        "start it; ask for less, name another queue, or raise the limit"
    )


def _above_quota(
    group: PodGroup, queue: str, quotas: Mapping[str, QueueBound], snapshot: Snapshot, stated: str
) -> str:
    """Returns the warning for a non-preemptible gang above its queue's quota; "" for all other gangs."""
    preemptible = is_preemptible(stated, group.scheduler_class, snapshot.base.priorities)
    if group.follows != "kai.scheduler" or preemptible is not False:
        return ""
    asked: Counter[str] = Counter({GPU: group.gpus})
    for pod_set in as_admitted(snapshot, group).pod_sets:
        for name in ("cpu", "memory"):
            asked[name] += pod_set.shape.requests.get(name, 0) * pod_set.count
    over = [name for name, (quota, _) in quotas.items() if asked[name] > quota]
    if not over:
        return ""
    name = over[0]
    why = f"of class {group.scheduler_class}" if stated != "non-preemptible" else "labelled non-preemptible"
    bound = quotas[name]
    whose = _whose(bound, queue, "quota")
    return (
        f"is {why}, so that KAI evicts no pod of it. It asks for {_amount(name, asked[name])}; KAI's "
        f"queue {queue} has a quota of {_amount(name, bound[0])}{whose}: KAI does not start it; raise the "
        f"quota (-1 is none), or label it {PREEMPTIBILITY}: preemptible"
    )


def _stated_preemptibility(obj: Mapping[str, Any]) -> str:
    """Returns the value of the object's label `PREEMPTIBILITY`, "" for none."""
    metadata = obj.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return str(labels.get(PREEMPTIBILITY, "")) if isinstance(labels, Mapping) else ""


def _whose(bound: QueueBound, queue: str, kind: str) -> str:
    return "" if bound[1] == queue else f" (by the {kind} of {bound[1]} above it)"


def _amount(name: str, amount: float) -> str:
    if name == GPU:
        return f"{amount:g} GPUs"
    return f"{quantity.show(name, int(amount))} {name}"
