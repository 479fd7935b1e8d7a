"""Pictures of the cluster that files describe, read again when they change; manifests applied to it beside.

The gangs are read from the objects as the controller reads them from watches, and judged by its rules.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError, Where
from planner.model.podgroup import PodGroup
from planner.model.priority import priority_of
from planner.model.words import counted
from webhook.admission.configuration.settings import Settings, queue_rules
from webhook.admission.environment import Environment
from webhook.files.reader import Document, documents
from webhook.kube.controller.world import World
from webhook.kube.standing import ClusterStanding, GangStanding, standings
from webhook.kube.state.gangs import Unbound, Work, as_chosen, unbound_from, work_from
from webhook.placement.fair_order import QueueRules, WaitingGang, in_order
from webhook.placement.workload_plan import GangPlan
from webhook.server.cluster_files import objects_in, read_cluster_documents, stamps
from webhook.ui.document import MAX_DECISIONS
from webhook.ui.news import news_of
from webhook.ui.picture import DecisionEntry, HealthLine, Picture, PolicyCounts
from webhook.workloads.kinds import row_of
from webhook.workloads.left_alone import is_left_alone
from webhook.workloads.pod_groups import PodGroups, joinable
from webhook.workloads.stored import controller_of

LOOK_SECONDS = 1.0
"""How often it is looked whether a file has changed."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of applying manifests: the plans of their gangs, and what policies said of them."""

    plans: tuple[GangPlan, ...] = ()
    policies: tuple[PolicyCounts, ...] = ()
    decisions: tuple[DecisionEntry, ...] = ()
    revision: str = ""


Apply = Callable[[Snapshot, Environment, float], Applied]
"""Applies the manifests to a cluster at a time (seconds since the epoch). Raises `InputError`."""


@dataclass(slots=True)
class FileSource:
    """The cluster files at `clusters`, with what `apply` makes of the files at `manifests`."""

    clusters: Sequence[str]
    manifests: Sequence[str]
    apply: Apply
    settings: Settings
    _last: Picture | None = None
    _decisions: dict[str, DecisionEntry] = field(default_factory=dict)

    async def pictures(self) -> AsyncGenerator[Picture]:
        """One now, and one after each change of a file; a bad change keeps the last good one, and says so.

        Raises `InputError` for what cannot be read at the start.
        """
        while True:
            before = self._stamps()
            yield await asyncio.to_thread(self._look, time.time())
            while self._stamps() == before:  # noqa: ASYNC110 - files tell nobody
                await asyncio.sleep(LOOK_SECONDS)

    def _stamps(self) -> tuple[tuple[str, int, int], ...]:
        return stamps((*self.clusters, *self.manifests))

    def _look(self, now: float) -> Picture:
        try:
            self._last = self._read(now)
        except InputError as error:
            if self._last is None:
                raise
            line = HealthLine("files", "problem", f"not taken up, the last good ones are shown: {error}")
            return replace(self._last, health=(line,))
        return self._last

    def _read(self, now: float) -> Picture:
        read = documents(self.clusters)
        snapshot, around = read_cluster_documents(read, self.settings)
        snapshot = around.settings("").of(snapshot)
        gangs = standings(world_of_files(snapshot, around, read, now))
        applied = self.apply(snapshot, around, now)
        rules = queue_rules(around.settings, now)
        standing = with_plans(ClusterStanding(snapshot, gangs, "", (), now), applied.plans, rules)
        before = self._last.standing.gangs if self._last is not None else ()
        for entry in (*news_of(before, standing.gangs, now), *applied.decisions):
            self._decisions.setdefault(entry.id, entry)  # what is decided again as before is no news
        while len(self._decisions) > MAX_DECISIONS:
            del self._decisions[next(iter(self._decisions))]
        files = len(self._stamps())
        good = HealthLine("files", "ok", f"{counted(files, 'file')} read")
        return Picture(
            standing,
            ", ".join((*self.clusters, *self.manifests)),
            tuple(self._decisions.values()),
            applied.policies,
            (applied.revision,) if applied.revision else (),
            (good,),
        )


def world_of_files(snapshot: Snapshot, around: Environment, read: Sequence[Document], now: float) -> World:
    """What the controller would see of a cluster with these objects. Raises `InputError` for a bad one."""
    works: list[Work] = []
    pods: list[Unbound] = []
    kinds: set[str] = set()
    groups = joinable(around.podgroups)
    for document in read:
        for obj in objects_in([document.value]):
            where = Where(document.file)
            row = row_of(str(obj.get("apiVersion", "")), str(obj.get("kind", "")))
            if row is None or not isinstance(obj.get("metadata"), dict):
                continue
            item = _as_stored(obj)
            if row.name == "Pod":
                pods += filter(None, [_unbound(item, where, groups)])
            elif row.name != "PodGroup":
                kinds.add(row.name)
                works += filter(None, [work_from(item, where, str(obj["apiVersion"]), row.name, groups)])
    chosen = _chosen(around)
    return World(
        snapshot,
        tuple(as_chosen(work, chosen) for work in works),
        tuple(as_chosen(pod, chosen) for pod in pods),
        frozenset(kinds),
        frozenset(),
        now,
        observed=around.observed(
            {*(work.ref.namespace for work in works), *(pod.ref.namespace for pod in pods)}
        ),
        limits=lambda namespace: around.settings(namespace).holds,
        rules=queue_rules(around.settings, now),
    )


def _as_stored(obj: dict[str, Any]) -> dict[str, Any]:
    """With the UID and the namespace that a file written by hand leaves out."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace") or "default"
    uid = metadata.get("uid") or f"{namespace}/{obj['kind']}/{metadata.get('name')}"
    return {**obj, "metadata": {**metadata, "namespace": namespace, "uid": uid}}


def _unbound(item: dict[str, Any], where: Where, groups: PodGroups) -> Unbound | None:
    spec, phase = item.get("spec") or {}, (item.get("status") or {}).get("phase")
    if spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return None
    kind = str(controller_of(item).get("kind", ""))
    return None if is_left_alone(item["metadata"]["namespace"], kind) else unbound_from(item, where, groups)


def _chosen(around: Environment) -> Callable[[PodGroup], PodGroup]:
    """A gang with what it holds by the settings of its namespace, where it does not say."""
    return lambda group: around.settings(group.name.partition("/")[0]).reserve.of(group)


def with_plans(standing: ClusterStanding, plans: Iterable[GangPlan], rules: QueueRules) -> ClusterStanding:
    """With gangs that were just applied: those that got a place hold it, the others stand in the queue."""
    snapshot, classes = standing.snapshot, standing.snapshot.base.priorities
    newcomers = {plan.group.name: plan for plan in plans}
    held = [gang for gang in standing.gangs if not gang.position and gang.name not in newcomers]
    waiting = [gang for gang in standing.queue if gang.name not in newcomers]
    for name, plan in newcomers.items():
        priority = priority_of(classes, plan.group)
        gang = GangStanding(name, "waiting", plan.group, priority, standing.now, answer=plan.answer)
        if plan.reservation is not None:
            snapshot = snapshot.with_reservation(plan.reservation)
            held.append(replace(gang, state="starting", reservation=plan.reservation, answer=None))
        elif plan.answer.decision == "queued":
            waiting.append(gang)
    by_name = {gang.name: gang for gang in waiting}
    queue = in_order(
        snapshot, (WaitingGang(gang.group, gang.created) for gang in waiting if gang.group), rules
    )
    gangs = (
        *sorted(held, key=lambda gang: gang.name),
        *(
            replace(by_name[place.gang.group.name], position=position, place=place)
            for position, place in enumerate(queue, 1)
        ),
    )
    return replace(standing, snapshot=snapshot, gangs=gangs)
