"""Reads which gangs hold a place, and which wait and for what, for commands and the live page. Read-only.

The state comes from the same watches as in a replica and the rules of its controller, so it is what the
controller decides in its next round. Begin with `standing_of`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from planner.model.errors import InputError, Where
from webhook.admission.environment import NAMESPACE
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.kubeconfig import ACCOUNT
from webhook.kube.controller.actions.scheduler_words import scheduler_words, unbound_words
from webhook.kube.controller.kueue.words import KueueSays, said_of
from webhook.kube.controller.leader import lease_path
from webhook.kube.controller.world import world_of
from webhook.kube.gang_standing import ClusterStanding, GangStanding, standings
from webhook.kube.installed import deployment_path, settings_of
from webhook.kube.reports import report_of
from webhook.kube.running import await_lists
from webhook.kube.runtime import ClusterRuntime
from webhook.policy.model.policy import PolicySet
from webhook.workloads.keys.annotation_keys import SKIP

NEWS_SECONDS = 1.0
"""Seconds from a change of the cluster to the next read: a burst of changes is read once."""


HEALTH_SECONDS = 10.0
"""Seconds for which the Deployment of the installation is not read again."""


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

    async def unbound_words(self, gang: GangStanding) -> str:
        """Returns why pods of the gang have been on no node for long, in the words of their scheduler and of
        Kueue; "" if there are none.
        """
        if not gang.unbound:
            return ""
        why = await scheduler_words(self.runtime.api, gang.unbound)
        return unbound_words(gang.unbound, why, gang.outdated)

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
