"""Makes room for gangs that have waited long, as a task of the leader: the parameters `defrag.*`, off by
default.

The task does the same as `bayplan defrag --for GANG --apply`, by a `Mover`, one set of moves at a time.
Between the starts of two sets are at least `every` seconds, also after a change of leader; a moved workload
is not moved again for a day. Any surprise ends the moves and uncordons the nodes, because no user is there to
decide how to continue. If the leader dies, the next one uncordons its nodes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from planner.cluster.snapshot import Snapshot
from planner.ledger.ledger import LedgerUnavailable
from planner.model.names import namespace_of
from planner.model.podgroup import PodGroup
from planner.model.words import listed, pods
from planner.planning.defragmentation.limits import HOUR, MoveLimits
from planner.planning.defragmentation.result import Defragmentation
from planner.planning.defragmentation.steps import Step
from webhook.kube.api.client import ApiError, Json
from webhook.kube.api.store import key_of
from webhook.kube.cluster_objects import MAKES_PODS, ClusterObjects, listed_objects
from webhook.kube.controller import reconcile as rules
from webhook.kube.controller import steps
from webhook.kube.controller.actions.events import Recorder
from webhook.kube.controller.pace import Lasting
from webhook.kube.controller.world import World, world_of
from webhook.kube.moving.metrics import MoveMetrics
from webhook.kube.moving.mover import Mover, Stopped
from webhook.kube.node_marks import LEADER
from webhook.kube.runtime import ClusterRuntime
from webhook.kube.state.gangs import Ref
from webhook.placement.moving.movables import movables
from webhook.placement.moving.queue_moves import QueueMoves, queue_moves

LOOK_SECONDS = 5.0
"""Seconds between two checks of the waiting gangs, or of the progress of moves."""

AGAIN_SECONDS = 60.0
"""Seconds from a search that found no moves, or an error, to the next search."""

EVENT_SECONDS = 600.0
"""Seconds between two events for a gang without moves: the figures in such an event change all the time."""

MOST_NAMESPACES = 8
"""Maximum number of namespaces that are listed one by one; of more, everything is listed."""

BUDGETS = "/poddisruptionbudgets"

log = logging.getLogger("bayplan")


@dataclass
class Defragmenter:
    """Moves workloads for waiting gangs: `lead` works while its replica leads, until it is cancelled.
    `clock`: returns monotonic seconds.
    """

    metrics: MoveMetrics = field(default_factory=MoveMetrics.new)
    clock: Callable[[], float] = time.monotonic
    look_seconds: float = LOOK_SECONDS
    _waiting: Lasting = field(default_factory=Lasting)
    """Since when this leader has seen each gang wait; only gangs in namespaces that allow moves for them."""
    _began: float = 0.0
    """When the last moves began, or this replica began to lead. Here and below: seconds of `clock`."""
    _next_search: float = 0.0
    _last_event: dict[str, float] = field(default_factory=dict)
    """When each gang last got an event that no moves were found for it."""
    _rests: dict[str, float] = field(default_factory=dict)
    """Until when a moved workload is not moved again, by the UID of its pods' controller or else by name."""
    _cordons: bool = False
    """Whether nodes may be cordoned by this leader's moves: they are in progress, or an error ended them."""

    async def lead(self, runtime: ClusterRuntime) -> None:
        """Checks and moves until cancelled. Errors are logged, and the next check tries again."""
        await runtime.watch.synced()
        await runtime.queue.synced()
        self._began, self._waiting = self.clock(), Lasting()
        recorder = Recorder(runtime.api)
        tidied = False
        while True:
            try:
                if self._cordons or not tidied:
                    tidied = await self._tidied(runtime)
                if tidied and (overdue := self._overdue(runtime)):
                    await self._make_room(runtime, overdue, recorder)
            except (ApiError, LedgerUnavailable) as error:
                log.info("defragmentation: %s; looking again", error)
                self._next_search = self.clock() + AGAIN_SECONDS
            except Exception as error:  # one invalid object must not end the loop
                log.error("defragmentation: %s", type(error).__name__, exc_info=error)
                self._next_search = self.clock() + AGAIN_SECONDS
            await asyncio.sleep(self.look_seconds)

    async def _tidied(self, runtime: ClusterRuntime) -> bool:
        """Uncordons the nodes that a former leader, or an error of this one, left cordoned; returns False if
        no snapshot is known yet.
        """
        snapshot = runtime.snapshot()
        if snapshot is None:
            return False
        if not (self._cordons or any(node.cordoned for node in snapshot.nodes.values())):
            return True
        marks = await self._mover(runtime).marks.all()
        left = [name for name, mark in marks.items() if mark.by == LEADER]
        if left:
            log.info("defragmentation: moves that did not end left nodes cordoned")
            await self._mover(runtime).undo(left)
        self._cordons = False
        return True

    def _overdue(self, runtime: ClusterRuntime) -> dict[str, MoveLimits]:
        """Returns the limits of the gangs that have waited longer than their namespace allows; none while the
        pause after the last moves or search lasts.
        """
        settings, now = runtime.queue.in_force(), self.clock()
        names = {gang.group.name for gang in runtime.waiting_gangs()}
        limits = {name: settings(namespace_of(name)).moves for name in names}
        chosen = {name: limit for name, limit in limits.items() if limit.after}
        beyond = self._waiting.overdue(dict.fromkeys(chosen, now), now, lambda name: chosen[name].after)
        if now < max(self._next_search, self._began + settings("").moves.every):
            return {}
        self._last_event = {name: since for name, since in self._last_event.items() if name in chosen}
        return {name: chosen[name] for name in beyond}

    async def _make_room(
        self, runtime: ClusterRuntime, overdue: Mapping[str, MoveLimits], recorder: Recorder
    ) -> None:
        """Searches moves for the overdue gangs, and carries out those for the first gang that has some."""
        self._next_search = self.clock() + AGAIN_SECONDS
        seen, world = await self._look(runtime)
        marks = await self._mover(runtime).marks.all()
        if marks:
            return  # another defragmentation is in progress, started by a user
        actions = await asyncio.to_thread(rules.reconcile, world)
        waits = {action.gang.name: action for action in actions if isinstance(action, steps.WaitAction)}
        refs = {name: action.gang.ref for name, action in waits.items()}
        order = [action.gang.group for action in waits.values()]
        max_lost = {name: limits.max_lost for name, limits in overdue.items() if name in waits}
        if not max_lost:
            return
        choice = await asyncio.to_thread(self._chosen, seen, order, max_lost, world)
        for name, why in choice.without.items():
            self.metrics.ended("none")
            if self.clock() - self._last_event.get(name, -EVENT_SECONDS) >= EVENT_SECONDS:
                self._last_event[name] = self.clock()
                text = (
                    f"waits for more than {overdue[name].after:g} s, and no workload is moved for it: {why}"
                )
                await recorder.tell(refs[name], "NotDefragmented", text)
        if choice.group is not None and choice.moves is not None:
            # The pause `every` counts from the start of the moves, whatever their result.
            self._began = self.clock()
            await self._move(runtime, choice.group, choice.moves, refs[choice.group.name], seen, recorder)

    def _chosen(
        self,
        seen: ClusterObjects,
        order: list[PodGroup],
        max_lost: Mapping[str, float],
        world: World,
    ) -> QueueMoves:
        may_move = movables(seen.objects, seen.snapshot, seen.now, left_alone=seen.left_alone)
        return queue_moves(seen.snapshot, order, max_lost, may_move, world.limits)

    async def _move(
        self,
        runtime: ClusterRuntime,
        group: PodGroup,
        moves: Defragmentation,
        ref: Ref,
        seen: ClusterObjects,
        recorder: Recorder,
    ) -> None:
        names = [move.movable.name for move in moves.moves]
        lost = moves.cost.lost / HOUR
        where = ", ".join("/".join(filter(None, domain)) for domain in moves.domains)
        text = f"{listed(names, 4)} {'moves' if len(names) == 1 else 'move'} to make room in {where}"
        text = f"{text}; {lost:.1f} GPU-hours of work are lost"
        await recorder.tell(ref, "Defragmenting", text)
        log.info("defragmentation for %s: %s", group.name, text)

        async def before(step: Step) -> None:
            """Reports the eviction on the workload, and records that it is not to be moved again soon."""
            movable = step.movable
            self._rests[movable.maker or movable.name] = self.clock() + _limits(runtime, group.name).rest
            self.metrics.lost_gpu_hours.inc(movable.cost.lost / HOUR)
            self.metrics.evicted.inc(len(step.evicts))
            moved = ref_of(seen, movable.name)
            if moved is not None:
                place = listed(sorted(step.place.touched), 4)
                text = f"{pods(len(step.evicts))} evicted to make room for {group.name}; to {place}"
                await recorder.tell(moved, "Defragmented", text)

        mover = replace(
            self._mover(runtime, moves.nodes, names),
            before=before,
            stopping=lambda: not _limits(runtime, group.name).after,
        )
        self._cordons = True
        try:
            await mover.apply(moves.nodes, names, f"the place of {group.name}", group.name)
        except (Stopped, ApiError, LedgerUnavailable) as error:
            self.metrics.ended("stopped")
            with suppress(ApiError):  # nodes that stay cordoned are marked: `_tidied` tries again
                await mover.undo(moves.nodes)
                self._cordons = False
            text = f"moves for it were stopped: {error}; {pods(len(mover.evicted))} evicted, nodes uncordoned"
            await recorder.tell(ref, "DefragmentationStopped", text, warning=True)
            return
        self._cordons = False
        self.metrics.ended("done")
        await recorder.tell(
            ref, "Defragmented", f"it has its place: {pods(len(mover.evicted))} evicted for it"
        )

    def _mover(self, runtime: ClusterRuntime, nodes: Iterable[str] = (), names: Iterable[str] = ()) -> Mover:
        """Returns the mover of these gangs and pods, which are to leave the nodes."""

        async def look() -> ClusterObjects:
            seen, _ = await self._look(runtime, nodes, names)
            return seen

        return Mover(
            runtime.api,
            look,
            partial(asyncio.sleep, self.look_seconds),
            lambda text: log.info("defragmentation: %s", text),
            by=LEADER,
        )

    async def _look(
        self, runtime: ClusterRuntime, nodes: Iterable[str] = (), names: Iterable[str] = ()
    ) -> tuple[ClusterObjects, World]:
        """Returns the cluster as the controller sees it, with its pods and their owners; if these gangs and
        pods are to leave the nodes, with those of the namespaces that are concerned.

        They are read from the API server each time: the watches do not keep by which label a pod agrees to be
        moved, or what PodDisruptionBudgets allow now.

        Raises `ApiError` if PodDisruptionBudgets may not be read: without them nothing is moved.
        """
        picture = runtime.snapshot()
        assert picture is not None, "the watch is synced"
        now = runtime.api.now()
        book = await runtime.ledger.book(now)
        world = world_of(picture, book, runtime.queue, now, observed=runtime.observed)
        # DaemonSets make more pods than there are in gangs, and `movables` leaves them out.
        bound = {pod.name for pod in world.snapshot.pods if not pod.daemon}

        def is_wanted(obj: Json) -> bool:
            return obj["kind"] != "Pod" or key_of(obj) in bound

        spaces = concerned(world.snapshot, nodes, names)
        objects, forbidden = await listed_objects(runtime.api, MAKES_PODS, is_wanted, spaces)
        budgets = next((path for path in forbidden if path.endswith(BUDGETS)), "")
        if budgets:
            raise ApiError(403, "Forbidden", f"{budgets} may not be listed: apply components/defragmentation")
        with_pods = {str(obj["metadata"].get("namespace")) for obj in objects if obj["kind"] == "Pod"}
        left_alone = {
            name: f"is in namespace {name}, which is not enforced" for name in runtime.observed(with_pods)
        }
        self._rests = {name: until for name, until in self._rests.items() if until > self.clock()}
        left_alone |= dict.fromkeys(self._rests, "was moved for another gang less than a day ago")
        seen = ClusterObjects(
            world.snapshot, objects, now, {}, tuple(forbidden), LEADER, left_alone=left_alone
        )
        return seen, world


def concerned(snapshot: Snapshot, nodes: Iterable[str], names: Iterable[str]) -> frozenset[str] | None:
    """Returns the namespaces of the gangs and pods `names`, and of all that is on the nodes or holds a part
    of them; None for all namespaces, if there are no names or many namespaces.

    Steps of moves depend on no other namespace: a gang, the pods of a controller, and the pods of a
    PodDisruptionBudget are in one namespace.
    """
    spaces = {namespace_of(name) for name in names}
    if not spaces:
        return None
    for node in nodes:
        spaces |= {namespace_of(pod.name) for pod in snapshot.bound.on(node) if not pod.daemon}
        spaces |= {namespace_of(held.gang) for held, _ in snapshot.holds.on(node)}
    return frozenset(spaces) if len(spaces) <= MOST_NAMESPACES else None


def _limits(runtime: ClusterRuntime, gang: str) -> MoveLimits:
    return runtime.queue.in_force()(namespace_of(gang)).moves


def ref_of(seen: ClusterObjects, name: str) -> Ref | None:
    """Returns the object NAMESPACE/KIND/NAME with which the name of a gang begins; None if the object was not
    listed.
    """
    namespace, kind, own = name.split("/")[:3]
    for obj in seen.objects:
        metadata = obj["metadata"]
        if obj["kind"] == kind and metadata["name"] == own and metadata.get("namespace") == namespace:
            return Ref(str(obj["apiVersion"]), kind, namespace, own, str(metadata.get("uid", "")))
    return None
