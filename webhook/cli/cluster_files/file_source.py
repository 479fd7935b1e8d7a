"""Makes pictures of a cluster in files with manifests applied to it. A picture is all that the live page
shows (`webhook.ui.picture`). There is a new picture when a file changes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError
from planner.model.priority import priority_of
from planner.model.words import counted
from webhook.admission.configuration.settings import Settings, queue_rules
from webhook.admission.environment import Environment
from webhook.cli.cluster_files.reading import read_cluster_documents
from webhook.cli.cluster_files.watched import stamps
from webhook.cli.cluster_files.world import world_of_files
from webhook.files.reader import documents
from webhook.kube.gang_standing import ClusterStanding, GangStanding, standings
from webhook.placement.fair_order import QueueRules, WaitingGang, in_order
from webhook.placement.workload_plan import GangPlan
from webhook.ui.document import MAX_DECISIONS
from webhook.ui.news import news_of
from webhook.ui.picture import DecisionEntry, HealthLine, Picture, PolicyCounts

LOOK_SECONDS = 1.0
"""Seconds between two checks for changed files."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of applying manifests: the plans of their gangs, the counts of policies' results, and the
    decisions that the page lists. `revision`: the revision of the policies.
    """

    plans: tuple[GangPlan, ...] = ()
    policies: tuple[PolicyCounts, ...] = ()
    decisions: tuple[DecisionEntry, ...] = ()
    revision: str = ""


Apply = Callable[[Snapshot, Environment, float], Applied]
"""The type of a function that applies the manifests to a cluster, at a time in seconds since the epoch.
Raises `InputError` for unreadable manifests.
"""


@dataclass(slots=True)
class FileSource:
    """Makes pictures of the cluster in the files at `clusters`.

    `apply`: applies the manifests to the cluster. `manifests`: their paths, which are watched for changes.
    `settings`: those in force if the files set none.
    """

    clusters: Sequence[str]
    manifests: Sequence[str]
    apply: Apply
    settings: Settings
    _last: Picture | None = None
    _decisions: dict[str, DecisionEntry] = field(default_factory=dict)

    async def pictures(self) -> AsyncGenerator[Picture]:
        """Yields a picture at once, and one after each change of a file. After an invalid change, yields
        the last valid picture again, with the error as its health.

        Raises `InputError` if the files cannot be read at the start.
        """
        while True:
            before = self._stamps()
            yield await asyncio.to_thread(self._current, time.time())
            while self._stamps() == before:  # noqa: ASYNC110 - files send no event
                await asyncio.sleep(LOOK_SECONDS)

    def _stamps(self) -> tuple[tuple[str, int, int], ...]:
        return stamps((*self.clusters, *self.manifests))

    def _current(self, now: float) -> Picture:
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
        snapshot, environment = read_cluster_documents(self.clusters, read, self.settings)
        snapshot = environment.settings("").of(snapshot)
        gangs = standings(world_of_files(snapshot, environment, read, now))
        applied = self.apply(snapshot, environment, now)
        rules = queue_rules(environment.settings, now)
        standing = with_plans(ClusterStanding(snapshot, gangs, "", (), now), applied.plans, rules)
        before = self._last.standing.gangs if self._last is not None else ()
        for entry in (*news_of(before, standing.gangs, now), *applied.decisions):
            self._decisions.setdefault(entry.id, entry)  # an unchanged decision keeps its first time
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


def with_plans(standing: ClusterStanding, plans: Iterable[GangPlan], rules: QueueRules) -> ClusterStanding:
    """Returns the standing with the gangs of `plans` added, or replaced: placed gangs hold their place,
    queued gangs wait in the queue, and rejected gangs are left out.
    """
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
