"""Reads which gangs hold a place, and which wait and for what, for commands and the live page. Read-only.

The state comes from the same watches as in a replica and the rules of its controller, so it is what the
controller decides in its next round. Begin with `standing_of`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from planner.cluster.census.domains import gpus_of
from planner.cluster.snapshot import Snapshot
from planner.model.answer import Answer
from planner.model.errors import InputError, Where
from planner.model.podgroup import PodGroup
from planner.model.priority import priority_of
from planner.model.reservation import Reservation
from webhook.admission.environment import NAMESPACE
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.kubeconfig import ACCOUNT
from webhook.kube.controller import reconcile as rules
from webhook.kube.controller import steps
from webhook.kube.controller.evictions import BehindUnstarted
from webhook.kube.controller.kueue.words import KueueSays, said_of
from webhook.kube.controller.leader import lease_path
from webhook.kube.controller.world import World, world_of
from webhook.kube.installed import deployment_path, settings_of
from webhook.kube.reports import report_of
from webhook.kube.running import await_lists
from webhook.kube.runtime import ClusterRuntime
from webhook.kube.state.gathering import Gang
from webhook.placement.fair_order import QueuePlace
from webhook.policy.model.policy import PolicySet
from webhook.workloads.keys.annotation_keys import SKIP

State = Literal["running", "starting", "admitted", "waiting", "stuck"]
"""`running`: pods of the gang are bound, and none of its existing pods is unbound. `starting`: the gang holds
a place, and has no bound pod, or some unbound ones. `admitted`: the gang waits, and the controller places it
in its next round. `waiting`: the gang is in the queue, or its scheduler may not evict others for it yet.
`stuck`: the gang lost nodes of its place, and there is no other place.
"""


NEWS_SECONDS = 1.0
"""Seconds from a change of the cluster to the next read: a burst of changes is read once."""


HEALTH_SECONDS = 10.0
"""Seconds for which the Deployment of the installation is not read again."""


@dataclass(frozen=True, slots=True)
class GangStanding:
    """The state of one gang. `group`: its request; None if only its reservation is known. `created`: when its
    object was created, in seconds since the epoch; 0 if only its reservation is known.

    `position`: its position in the queue, from 1; 0 if the gang is not queued. `place`: why it has this
    position; None if it is not queued. `bound`: the number of its pods on nodes, at most its size.
    `surplus`: the number of pods on nodes beyond its size, for example one that terminates while its
    replacement has started. `gated`: the number of pods that wait at Bayplan's scheduling gate.

    `reservation`: what the gang holds, or will hold if it is `admitted`; None if it is `waiting`. `answer`:
    the planner's answer, for example why it waits or is stuck; None if it was not planned.
    """

    name: str
    state: State
    group: PodGroup | None = None
    priority: int = 0
    created: float = 0.0
    position: int = 0
    bound: int = 0
    surplus: int = 0
    gated: int = 0
    reservation: Reservation | None = None
    answer: Answer | None = None
    place: QueuePlace | None = None

    @property
    def pods(self) -> int:
        """The number of pods that the gang requests, or for which it holds a place if only its reservation is
        known.
        """
        if self.group is not None:
            return self.group.size
        held = self.reservation.assignments if self.reservation is not None else ()
        return sum(part.count for part in held)

    @property
    def gpus(self) -> int:
        """The number of whole GPUs that the gang requests, or holds if only its reservation is known."""
        if self.group is not None:
            return self.group.gpus
        held = self.reservation
        if held is None:
            return 0
        per_pod = {pod_set: gpus_of(amounts) for pod_set, amounts in held.requests}
        return sum(per_pod.get(part.pod_set, 0) * part.count for part in held.assignments)

    def waits_for(self, *, wide: bool) -> str:
        """Returns the answer's message up to the first semicolon, or with `wide` all of it; without an
        answer, that the gang has not been planned yet.
        """
        if self.answer is None:
            return "its turn: it is planned when it is nearer to the front"
        message = self.answer.message
        return message if wide else message.split("; ")[0]

    def to_json(self) -> dict[str, object]:
        """Returns plain JSON for `queue -o json`, `why -o json` and the live page."""
        held, answer = self.reservation, self.answer
        created = datetime.fromtimestamp(self.created, UTC).isoformat() if self.created else None
        entry: dict[str, object] = {
            "name": self.name,
            "state": self.state,
            "position": self.position or None,
            "pods": {
                "wanted": self.pods,
                "bound": self.bound,
                "gated": self.gated,
                **({"surplus": self.surplus} if self.surplus else {}),
            },
            "gpus": self.gpus,
            "priority": self.priority,
            "created": created,
        }
        if self.place is not None:
            entry["namespaceWouldHave"] = {"gpus": self.place.with_it, "of": self.place.total}
        if held is not None:
            domains = [list(domain) for domain in held.domains]
            entry["holds"] = {
                "mode": held.mode,
                "domains": domains,
                "nodes": held_nodes(held),
                "id": held.id,
            }
        if answer is not None:
            attempts = [
                {"level": attempt.level or None, "fits": attempt.fits, "wanted": attempt.wanted}
                for attempt in answer.attempts
            ]
            entry |= {"reason": answer.reason, "message": answer.message}
            entry |= {"obstacles": dict(answer.obstacles), "levels": attempts}
        return entry


@dataclass(frozen=True, slots=True)
class ClusterStanding:
    """The cluster at one moment. `gangs`: gangs with a place by name, then admitted ones, those that wait
    before their scheduler may evict others, and the queue in order.

    `snapshot` contains the reservations. `leader`: the replica whose controller works, "" for none. `unread`:
    the paths that the user may not read. `now`: seconds since the epoch.
    """

    snapshot: Snapshot
    gangs: tuple[GangStanding, ...]
    leader: str
    unread: tuple[str, ...]
    now: float

    @property
    def queue(self) -> tuple[GangStanding, ...]:
        """The queued gangs, in order."""
        return tuple(gang for gang in self.gangs if gang.position)


@dataclass(slots=True)
class Lookout:
    """A cluster that is watched without taking part in the leader election. `standing` reads its state,
    `news` waits for a change.
    """

    runtime: ClusterRuntime
    namespace: str
    unread: tuple[str, ...]
    _deployment: Json | ApiError | None = None
    _asked: float = field(default=float("-inf"))

    async def deployment(self) -> Json | None:
        """Returns the replicas' Deployment, None if there is none. Raises `ApiError` if it could not be read.

        It is read every `HEALTH_SECONDS` at most, not for every picture of the live page.
        """
        if time.monotonic() - self._asked >= HEALTH_SECONDS:
            try:
                self._deployment = await self.runtime.api.find(deployment_path(self.namespace))
            except ApiError as error:
                self._deployment = error
            self._asked = time.monotonic()
        if isinstance(self._deployment, ApiError):
            raise self._deployment
        return self._deployment

    async def kueue_workloads(self, name: str) -> tuple[KueueSays, ...]:
        """Returns what Kueue reports about the workload NAMESPACE/KIND/NAME; nothing for a name of another
        form.
        """
        if len(name.split("/")) != 3 or not all(name.split("/")):
            return ()
        return tuple(await said_of(self.runtime.api, name))

    async def report(self, name: str, namespace: str) -> Json | None:
        """Returns the Report of this name in a namespace; None if there is none, or it cannot be read."""
        with suppress(ApiError):
            return await report_of(self.runtime.api, name, namespace)
        return None

    async def standing(self) -> ClusterStanding:
        """Returns the current state, at the API server's time: holds expire by it."""
        runtime, now = self.runtime, self.runtime.api.now()
        with suppress(ApiError):  # if the user may not read the Deployment, `unread` says so
            runtime.settings = settings_of(await self.deployment())
        picture = runtime.snapshot()
        assert picture is not None, "all was read, or is done without"
        in_force = runtime.environment().with_policy_parameters(PolicySet())
        runtime.queue.in_force = lambda: in_force.settings  # read by `reconcile`; a server sets it too
        world = world_of(picture, runtime.ledger.watched(now), runtime.queue, now, observed=in_force.observed)
        gangs = await asyncio.to_thread(standings, world)
        return ClusterStanding(world.snapshot, gangs, await self._leader(), self.unread, now)

    async def news(self) -> None:
        """Waits until something in the cluster has changed, and `NEWS_SECONDS` more."""
        self.runtime.watch.news.clear()
        await self.runtime.watch.news.wait()
        await asyncio.sleep(NEWS_SECONDS)

    def absence(self, name: str, by_kueue: Iterable[KueueSays] = ()) -> str:
        """Returns why no gang of the workload NAMESPACE/KIND/NAME holds a place or waits. `by_kueue`: what
        Kueue reports about the workload.

        Raises `InputError` for a name of another form.
        """
        namespace, *rest = name.split("/")
        if len(rest) != 2 or not all((namespace, *rest)):
            raise InputError(f"{name!r} is not NAMESPACE/KIND/NAME, as in research/Job/train")
        runtime = self.runtime
        around = runtime.environment().with_policy_parameters(PolicySet())
        if not runtime.knows_namespace(namespace):
            return f"there is no namespace {namespace}"
        if runtime.queue.skips(name):
            return f"it, or what made it, carries {SKIP}: it is not planned"
        if around.observed([namespace]):
            return (
                f"namespace {namespace} is not in mode enforce: nothing is reserved there, and what waited "
                "was released without a place"
            )
        if not runtime.has(name):
            return "there is no such object, or it has ended"
        if reasons := [f"{own.why} (Workload {own.name})" for own in by_kueue if own.why]:
            return f"it holds nothing, and waits for Kueue, which says: {'; '.join(reasons)}"
        return (
            "it holds nothing and does not wait: it asks for no GPUs, has ended, is for Kueue to admit or to "
            "place, was let in for evictions or new nodes, was there before Bayplan, or is no gang (a Job "
            "without completionMode: Indexed): each of its pods then has a place of its own, which `bayplan "
            "top` lists"
        )

    async def _leader(self) -> str:
        with suppress(ApiError):
            lease = await self.runtime.api.get(lease_path(self.namespace))
            return str((lease.get("spec") or {}).get("holderIdentity") or "")
        return ""


@asynccontextmanager
async def standing_of(
    kubeconfig: str | None, namespace: str = NAMESPACE, account: Path | None = None
) -> AsyncIterator[Lookout]:
    """Yields the watched cluster of a kubeconfig; `namespace` is that of the installation.

    `account`: inside a cluster, the folder with the token and CA of the pod's service account; None
    otherwise. Raises `InputError` if the cluster cannot be reached, or its nodes may not be read.
    """
    runtime = await ClusterRuntime.connect(
        kubeconfig,
        in_cluster=account is not None,
        account=account or ACCOUNT,
        namespace=namespace,
    )
    try:
        await runtime.api.get("/api/v1/nodes", limit="1")  # fails at once if the credentials are wrong
        unread = [reflector.path for reflector in await await_lists(runtime)]
        unread += await _unread_installation(runtime.api, namespace)
        yield Lookout(runtime, namespace, tuple(dict.fromkeys(unread)))
    except ApiError as error:
        raise InputError(f"cannot be read: {error}", Where(kubeconfig or runtime.api.host)) from None
    finally:
        await runtime.close()


async def _unread_installation(api: Api, namespace: str) -> list[str]:
    """Returns the path of the Deployment if the user may not read it, else nothing.

    Without the Deployment, namespaces without a mode label count as enforced.
    """
    path = deployment_path(namespace)
    try:
        await api.find(path)
    except ApiError as error:
        if error.status != 403:
            raise
        return [path]
    return []


def standings(world: World) -> tuple[GangStanding, ...]:
    """Returns every gang with a place by name, then those that the controller admits in its next round, those
    that wait before their scheduler may evict others for them, and the queue in order.
    """
    actions = rules.reconcile(world)
    released = {action.reservation.id for action in actions if isinstance(action, steps.Release)}
    stuck = {action.gang.name: action.answer for action in actions if isinstance(action, steps.Stuck)}
    holding = [
        _holding(world.snapshot, held, world.gangs.get(held.gang), stuck)
        for held in sorted(world.snapshot.reservations, key=lambda held: held.gang)
        if held.id not in released
    ]
    admitted = [
        _waiting(
            world.snapshot, action.gang, "admitted", answer=action.answer, reservation=action.reservation
        )
        for action in actions
        if isinstance(action, steps.Admit)
    ]
    behind = (action for action in actions if isinstance(action, BehindUnstarted))
    at_gate = [_waiting(world.snapshot, own.gang, "waiting", answer=own.answer) for own in behind]
    waiting = [
        _waiting(world.snapshot, action.gang, "waiting", action.position, action.answer, place=action.place)
        for action in actions
        if isinstance(action, steps.WaitAction)
    ]
    return (*holding, *admitted, *at_gate, *waiting)


def _holding(
    snapshot: Snapshot, held: Reservation, gang: Gang | None, stuck: Mapping[str, Answer]
) -> GangStanding:
    bound = sum(1 for _ in snapshot.bound.of_gang(held.gang, held.id))
    unbound = len(gang.pods) if gang is not None else 0
    state: State = "stuck" if held.gang in stuck else "running" if bound and not unbound else "starting"
    size = gang.group.size if gang is not None else sum(part.count for part in held.assignments)
    return GangStanding(
        held.gang,
        state,
        gang.group if gang is not None else None,
        priority_of(snapshot.base.priorities, gang.group) if gang is not None else 0,
        gang.created if gang is not None else 0.0,
        bound=min(bound, size),
        surplus=max(bound - size, 0),
        gated=sum(pod.gated for pod in gang.pods) if gang is not None else 0,
        reservation=held,
        answer=stuck.get(held.gang),
    )


def _waiting(
    snapshot: Snapshot,
    gang: Gang,
    state: State,
    position: int = 0,
    answer: Answer | None = None,
    reservation: Reservation | None = None,
    place: QueuePlace | None = None,
) -> GangStanding:
    return GangStanding(
        gang.name,
        state,
        gang.group,
        priority_of(snapshot.base.priorities, gang.group),
        gang.created,
        position,
        gated=sum(pod.gated for pod in gang.pods),
        reservation=reservation,
        answer=answer,
        place=place,
    )


def holding(held: Reservation) -> str:
    """Returns a reservation as text: the paths of whole domains, or the number of nodes of which it holds a
    part.
    """
    if held.mode == "domain":
        return ", ".join("/".join(filter(None, domain)) for domain in held.domains)
    nodes = held_nodes(held)
    return f"a part of {nodes[0]}" if len(nodes) == 1 else f"parts of {len(nodes)} nodes"


def held_nodes(held: Reservation) -> list[str]:
    """Returns the names of the nodes of the gang's pods, in order."""
    return sorted({part.node for part in held.assignments})
