"""Carries out the moves of a defragmentation: cordons nodes, evicts gang by gang, waits for each, uncordons.

`planner.planning.defragmentation.steps` decides the steps. All state is in the cluster: a node that was
cordoned for the moves has a mark. After a crash, Ctrl-C or a surprise (an unexpected change, which ends the
moves), a later run therefore sees the progress, and continues or undoes the moves. If they stop before the
first pod is evicted, the nodes are uncordoned automatically.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from planner.model.pod import BoundPod
from planner.model.reservation import Reservation
from planner.model.words import listed, pods
from planner.planning.defragmentation.movable import Movable
from planner.planning.defragmentation.steps import (
    MoveTask,
    NotYet,
    Step,
    UnexpectedChange,
    arrived,
    move_task,
    next_step,
)
from planner.planning.plan import plan
from webhook.kube.api.client import Api, ApiError
from webhook.kube.cluster_objects import ClusterObjects
from webhook.kube.node_marks import CordonError, CordonMark, NodeMarks
from webhook.placement.moving.movables import movables

WAIT_SECONDS = 600.0
"""Seconds that reservations and pods may take to reach their place: images are pulled meanwhile."""

_NODES = 8
"""Maximum number of nodes that a message names."""


_T = TypeVar("_T")


class Stopped(Exception):  # noqa: N818 - it is an end, not a fault
    """The moves ended before the goal was reached; the message says why."""


@dataclass
class Mover:
    """One defragmentation of a cluster.

    `look`: reads the cluster; `news`: waits until something has changed, for a limited time. `tell`: prints a
    line of progress. `stopping`: returns whether the moves are to end, which they do between two steps.
    `restart_all`: pods count as restartable unless they opt out. `seconds`: maximum duration of each wait.
    `by`: as in `CordonMark`. `before`: called with each step before its pods are evicted. `evicted`: the
    names of the evicted pods.
    """

    api: Api
    look: Callable[[], Awaitable[ClusterObjects]]
    news: Callable[[], Awaitable[None]]
    tell: Callable[[str], None]
    stopping: Callable[[], bool] = lambda: False
    restart_all: bool = False
    seconds: float = WAIT_SECONDS
    clock: Callable[[], float] = time.monotonic
    by: str = ""
    before: Callable[[Step], Awaitable[None]] | None = None
    evicted: list[str] = field(default_factory=list)

    @property
    def marks(self) -> NodeMarks:
        """The marks on the cluster's nodes."""
        return NodeMarks(self.api)

    async def apply(self, nodes: Sequence[str], planned: Collection[str], aim: str, gang: str = "") -> None:
        """Frees these nodes by moving the gangs and pods named in `planned`. `aim`: the goal in words;
        `gang`: the gang to be placed there, "" if none.

        Raises `Stopped` or `ApiError`; if no pod was evicted by then, the nodes are uncordoned.
        """
        await self.refuse_second()
        mark = CordonMark(aim, gang, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), self.by)
        try:
            for name in nodes:
                try:
                    await self.marks.cordon(name, mark)
                except CordonError as error:
                    raise Stopped(str(error)) from None
            self.tell(f"cordoned {listed(nodes, _NODES)}")
            await self._free(nodes, planned)
        except (Stopped, ApiError):
            if not self.evicted:
                await self.undo(nodes)
            raise
        await self._finish(nodes, aim, gang)

    async def refuse_second(self) -> None:
        """Raises `Stopped` if another defragmentation is in progress."""
        if others := await self.marks.all():
            where = listed(list(others), _NODES)
            raise Stopped(f"another defragmentation has cordoned {where}: first --resume or --undo it")

    async def resume(self) -> None:
        """Continues the defragmentation whose nodes are marked. Raises `Stopped`."""
        marked = await self.marks.all()
        if not marked:
            raise Stopped("no node is marked: there is nothing to go on with")
        first = next(iter(marked.values()))
        self.tell(f"{first.aim}: begun {first.since}, {listed(list(marked), _NODES)} cordoned")
        await self._free(list(marked))
        await self._finish(list(marked), first.aim, first.gang)

    async def undo(self, nodes: Iterable[str] | None = None) -> None:
        """Uncordons those of the nodes that are marked (None: all marked nodes). Moved pods stay where they
        are.
        """
        names = await self.marks.uncordon(await self.marks.all() if nodes is None else nodes)
        self.tell(f"uncordoned {listed(names, _NODES)}" if names else "no node is marked: nothing to undo")

    async def _free(self, nodes: Sequence[str], planned: Collection[str] | None = None) -> None:
        """Moves the gangs and pods on these nodes, in steps. `planned`: those that may be there (None: all);
        any other one ends the moves.
        """
        task = await self._until(lambda seen: self._task(seen, nodes, planned))
        for name, held in sorted(task.holds.items()):
            self.tell(f"{name} holds {listed(sorted(held.touched), _NODES)} now")
        done: list[str] = []
        while True:
            if self.stopping():
                raise Stopped("stopped as asked, between two steps")
            step = await self._until(
                lambda seen: next_step(seen.snapshot, self._movables(seen), task, plan, done)
            )
            if step is None:
                return
            await self._do(step, task, f"{len(done) + 1}/{len(task.names)}")
            done.append(step.movable.name)

    def _task(
        self, seen: ClusterObjects, nodes: Sequence[str], planned: Collection[str] | None
    ) -> MoveTask | NotYet | UnexpectedChange:
        """Returns the task once the reservations have left the nodes, and `NotYet` before. The leader's
        controller moves them, as after any lost node: if no replica leads, returns an `UnexpectedChange`.
        """
        task = move_task(seen.snapshot, self._movables(seen), nodes, planned)
        if isinstance(task, NotYet) and seen.snapshot.reservations and not seen.leader:
            return UnexpectedChange(
                "no replica of Bayplan leads, and the reservations have to be moved by one"
            )
        return task

    async def _do(self, step: Step, task: MoveTask, number: str) -> None:
        """Evicts the pods of a step, and waits until their successors are bound."""
        place = listed(sorted({seat.node for seat in step.place.assignments}), _NODES)
        how = "reserved" if step.reserved else "free now"
        self.tell(f"{number} {step.movable.name}: {pods(len(step.evicts))} to {place} ({how})")
        if self.before is not None:
            await self.before(step)
        for pod in step.evicts:
            await self._evict(pod)
        await self._until(
            lambda seen: arrived(seen.snapshot, self._movables(seen), task, step), between_steps=False
        )

    async def _until(
        self,
        outcome_of: Callable[[ClusterObjects], _T | NotYet | UnexpectedChange],
        *,
        between_steps: bool = True,
    ) -> _T:
        """Returns the outcome once it is not `NotYet`.

        Raises `Stopped` for an `UnexpectedChange`, after `seconds`, and if `stopping` says so between two
        steps.
        """
        end, last_message = self.clock() + self.seconds, ""
        while True:
            outcome = outcome_of(await self.look())
            if isinstance(outcome, UnexpectedChange):
                raise Stopped(outcome.message)
            if not isinstance(outcome, NotYet):
                return outcome
            if self.clock() >= end:
                raise Stopped(f"waited {self.seconds:g} s {outcome.message}")
            if between_steps and self.stopping():
                raise Stopped(f"stopped as asked, while waiting {outcome.message}")
            if outcome.message != last_message:
                self.tell(f"waiting {outcome.message}")
                last_message = outcome.message
            await self.news()

    async def _evict(self, pod: BoundPod) -> None:
        """Evicts a pod by the eviction API, which checks PodDisruptionBudgets.

        Only the pod that runs on the node is evicted: a StatefulSet may have replaced it with a pod of the
        same name. A pod that does not exist, or is replaced, counts as evicted.
        """
        namespace, _, name = pod.name.partition("/")
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        stored = await self.api.find(path)
        if stored is not None and (stored.get("spec") or {}).get("nodeName") == pod.node:
            body = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": name, "namespace": namespace},
                "deleteOptions": {"preconditions": {"uid": stored["metadata"]["uid"]}},
            }
            try:
                await self.api.create(f"{path}/eviction", body)
            except ApiError as error:
                if error.status not in (404, 409):  # 409: the UID is that of another pod by now
                    raise Stopped(f"the eviction of {pod.name} was refused: {error.message}") from None
        self.evicted.append(pod.name)

    async def _finish(self, nodes: Sequence[str], aim: str, gang: str) -> None:
        await self.undo(nodes)
        self.tell(f"done: {aim}; {pods(len(self.evicted))} evicted")
        if gang:
            held = await self._until(lambda seen: _admitted(seen, gang))
            self.tell(f"{gang} holds {listed(sorted(held.touched), _NODES)}")

    def _movables(self, seen: ClusterObjects) -> tuple[Movable, ...]:
        return movables(
            seen.objects,
            seen.snapshot,
            seen.now,
            all_restartable=self.restart_all,
            left_alone=seen.left_alone,
        )


def _admitted(seen: ClusterObjects, gang: str) -> Reservation | NotYet:
    held = seen.snapshot.holding(gang)
    return held or NotYet(f"for {gang} to be admitted; `bayplan why {gang}` tells what it waits for")
