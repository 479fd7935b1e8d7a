"""Makes pictures of a live cluster: its gangs as the controller sees them, the decisions on them, and its
health.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field

from webhook.kube.api.client import ApiError
from webhook.kube.api.discovery import served_path
from webhook.kube.api.reflector import Reflector
from webhook.kube.gang_standing import ClusterStanding
from webhook.kube.reports import GROUP, RESOURCE
from webhook.kube.standing import HEALTH_SECONDS, Lookout
from webhook.ui.decision_log import EVENTS, EVENTS_QUERY, REPORTS_QUERY, EventLog, ReportLog
from webhook.ui.picture import HealthLine, Picture
from webhook.ui.replica_metrics import ReplicaSummary, replica_summary

MAX_LOGS_SECONDS = 5.0
"""The maximum number of seconds for which the first picture waits for Events and Reports: the user may not
be allowed to list them.
"""


@dataclass(slots=True)
class LiveSource:
    """Makes pictures of the cluster that `lookout` watches."""

    lookout: Lookout
    _replicas: tuple[HealthLine, ...] = ()
    _summary: ReplicaSummary = field(default_factory=ReplicaSummary)
    _asked: float = field(default=float("-inf"))

    async def pictures(self) -> AsyncGenerator[Picture]:
        """Yields a picture as soon as Events and Reports are read, one after changes, and one every
        `HEALTH_SECONDS` if nothing changes. Changes in quick succession become one picture.
        """
        runtime = self.lookout.runtime
        events, reports = EventLog(runtime.watch.news.set), ReportLog(runtime.watch.news.set)
        logs = [
            Reflector(runtime.api, EVENTS, events, query=EVENTS_QUERY),
            Reflector(
                runtime.api, RESOURCE, reports, find=lambda: served_path(runtime.api, GROUP, RESOURCE),
                query=REPORTS_QUERY,
            ),
        ]  # fmt: skip
        following = [asyncio.create_task(log.run()) for log in logs]
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(MAX_LOGS_SECONDS):
                    await asyncio.gather(*(_read_once(log) for log in logs))
            while True:
                started = time.monotonic()
                standing = await self.lookout.standing()
                await self._ask_replicas()
                yield Picture(
                    standing,
                    runtime.api.host,
                    (*events.newest(), *reports.newest()),
                    tuple(reports.policies()) or self._summary.policies,  # without Reports, by metrics
                    tuple(sorted({*reports.revisions(), *self._summary.revisions})),
                    (*self._watching(standing, logs), *self._replicas, *self._summary.health),
                )
                # Sleeps as long as the picture took, so that a large cluster uses at most half a core.
                await asyncio.sleep(time.monotonic() - started)
                with suppress(TimeoutError):
                    async with asyncio.timeout(HEALTH_SECONDS):
                        await self.lookout.news()
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)

    def _watching(self, standing: ClusterStanding, logs: list[Reflector]) -> tuple[HealthLine, ...]:
        """Returns the health of the controller (whether a replica leads), of the watches, and of the
        permissions.
        """
        nobody = "no replica leads: no waiting gang is admitted until one does"
        leads = HealthLine("controller", "ok", f"{standing.leader} leads")
        problem = self.lookout.runtime.problem()
        unread = [*standing.unread, *(log.path for log in logs if log.forbidden)]
        rights = f"not read, for want of the right to list it: {', '.join(unread)}"
        return (
            leads if standing.leader else HealthLine("controller", "problem", nobody),
            HealthLine("watches", "warning", problem)
            if problem
            else HealthLine("watches", "ok", "all are open"),
            HealthLine("rights", "warning", rights) if unread else HealthLine("rights", "ok", "all is read"),
        )

    async def _ask_replicas(self) -> None:
        """Reads readiness and metrics of the replicas, unless that was done in the last `HEALTH_SECONDS`."""
        if time.monotonic() - self._asked >= HEALTH_SECONDS:
            self._asked = time.monotonic()
            api, namespace = self.lookout.runtime.api, self.lookout.namespace
            self._replicas = await replicas_ready(self.lookout)
            self._summary = await replica_summary(api, namespace, time.time())


async def replicas_ready(lookout: Lookout) -> tuple[HealthLine, ...]:
    """Returns a line that says how many of the webhook's replicas are ready; none without permission to
    read the Deployment.
    """
    try:
        deployment = await lookout.deployment()
    except ApiError:
        return ()
    if deployment is None:
        return (HealthLine("webhook", "warning", f"there is no Deployment bayplan in {lookout.namespace}"),)
    wanted = (deployment.get("spec") or {}).get("replicas", 1)
    ready = (deployment.get("status") or {}).get("readyReplicas", 0)
    message = f"{ready} of {wanted} replicas are ready"
    return (HealthLine("webhook", "ok" if ready >= wanted else "warning" if ready else "problem", message),)


async def _read_once(log: Reflector) -> None:
    """Waits until the reflector has listed its objects once, or may not list them."""
    while not log.synced.is_set() and not log.forbidden:  # noqa: ASYNC110 - `forbidden` has no event
        await asyncio.sleep(0.05)
