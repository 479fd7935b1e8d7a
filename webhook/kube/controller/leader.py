"""Leader election by a Lease, with the rules of Kubernetes' own controllers.

A replica leads while it renews the Lease. Another replica may take the Lease once it has seen the Lease
unchanged for the Lease's whole duration; it measures that by its own clock, so clocks need not agree. A
leader that cannot renew the Lease stops before that duration ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from webhook.kube.api.client import Api, ApiError, Json

DURATION = 10.0
"""Seconds after which a Lease that was not renewed may be taken."""


RENEW_WITHIN = 6.0
"""Seconds within which the holder must renew the Lease, or stop: well before another may take it."""


PAUSE = 2.0
"""Seconds between two checks of the Lease."""


AGAIN_SECONDS = 60.0
"""Seconds after which a companion task (see `with_companion`) that failed is restarted."""


LEASE = "bayplan-controller"
"""The name of the Lease."""


log = logging.getLogger("bayplan")


def lease_path(namespace: str, name: str = LEASE) -> str:
    """Returns the API path of the Lease; `namespace` is that of the installation."""
    return f"{_leases(namespace)}/{name}"


def _leases(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def identity() -> str:
    """Returns a unique name for this process."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


@dataclass(slots=True)
class Leader:
    """Runs `work` while this replica holds the Lease, and cancels it when the replica loses the Lease.

    `me`: this replica's name in the Lease. `leads`: whether it leads. `problem`: why the Lease could not be
    read or renewed, "" if it could.
    """

    api: Api
    namespace: str
    work: Callable[[], Awaitable[None]]
    name: str = LEASE
    me: str = field(default_factory=identity)
    leads: bool = False
    problem: str = ""
    _task: asyncio.Future[None] | None = None
    _seen: str = ""
    _seen_at: float = 0.0
    """The last seen resource version of the Lease, and when it was first seen, in monotonic seconds."""
    _renewed: float = 0.0
    """When the last successful check of the Lease began, in monotonic seconds."""

    async def run(self) -> None:
        """Takes part in the election until cancelled; then the work ends and the Lease is released."""
        try:
            while True:
                await self._look()
                await asyncio.sleep(PAUSE)
        finally:
            await self._stop()
            with suppress(ApiError):
                await asyncio.shield(self._give_up())

    async def _look(self) -> None:
        started = time.monotonic()
        try:
            # `wait_for` of Python 3.11 may lose a cancellation.
            async with asyncio.timeout(RENEW_WITHIN - PAUSE):
                holds = await self._hold(started)
            self.problem = ""
        except Exception as error:  # also of an odd answer, for example the JSON of a proxy
            # A leader goes on only if another check, after `PAUSE`, begins within `RENEW_WITHIN`.
            holds = self.leads and time.monotonic() - self._renewed < RENEW_WITHIN - PAUSE
            is_usual = isinstance(error, (ApiError, TimeoutError))
            problem = str(error) or "timed out" if is_usual else repr(error)
            if not self.problem:
                log.warning("lease %s/%s: %s", self.namespace, self.name, problem)
            self.problem = problem
        else:
            self._renewed = started
        if self._task is not None and self._task.done():
            self._tell_end(self._task)
            self._task = None
        if holds and self._task is None:
            log.info("controller: this replica leads (%s)", self.me)
            self._task = asyncio.ensure_future(self.work())
        elif not holds and self._task is not None:
            log.info("controller: this replica leads no more")
            await self._stop()
        self.leads = holds

    async def _hold(self, now: float) -> bool:
        """Renews or takes the Lease; returns False if another replica holds it. `now`: monotonic seconds."""
        try:
            lease = await self.api.get(self._path)
        except ApiError as error:
            if error.status != 404:
                raise
            return await self._write(self.api.create, self._folder, self._lease(None))
        spec = lease.get("spec") or {}
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen:
            self._seen, self._seen_at = version, now
        holder = spec.get("holderIdentity") or ""
        if holder not in ("", self.me) and now - self._seen_at < float(spec.get("leaseDurationSeconds") or 0):
            return False
        return await self._write(self.api.replace, self._path, self._lease(lease))

    async def _write(self, write: Callable[[str, Json], Awaitable[Json]], path: str, lease: Json) -> bool:
        try:
            stored = await write(path, lease)
        except ApiError as error:
            if error.status != 409:
                raise
            return False
        self._seen, self._seen_at = stored["metadata"]["resourceVersion"], time.monotonic()
        return True

    def _lease(self, former: Json | None) -> Json:
        spec: dict[str, Any] = dict((former or {}).get("spec") or {})
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if spec.get("holderIdentity") != self.me:
            spec |= {"acquireTime": now, "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
        spec |= {"holderIdentity": self.me, "leaseDurationSeconds": int(DURATION), "renewTime": now}
        metadata = (former or {}).get("metadata") or {"name": self.name, "namespace": self.namespace}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}

    async def _give_up(self) -> None:
        """Releases the Lease, so that another replica can take it at once."""
        lease = await self.api.get(self._path)
        if (lease.get("spec") or {}).get("holderIdentity") == self.me:
            spec = {**lease["spec"], "holderIdentity": ""}
            await self.api.replace(self._path, {**lease, "spec": spec})

    async def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            # `await self._task` would hide a cancellation of the election itself behind that of the work.
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.exception()  # reads the error: else asyncio logs it
            self._task = None

    @staticmethod
    def _tell_end(task: asyncio.Future[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("controller: ended by %s; it begins again", type(error).__name__, exc_info=error)

    @property
    def _folder(self) -> str:
        return _leases(self.namespace)

    @property
    def _path(self) -> str:
        return lease_path(self.namespace, self.name)


async def with_companion(
    work: Callable[[], Awaitable[None]], companion: Callable[[], Coroutine[None, None, None]]
) -> None:
    """Runs the leader's work (the controller) together with its companion task (the defragmenter).

    If the companion fails, the error is logged, and the companion is restarted after `AGAIN_SECONDS`, while
    gangs are still admitted. If the work fails, both end: the companion depends on the controller, which
    moves the reservations of the gangs that make room.
    """
    async with asyncio.TaskGroup() as tasks:
        companion_task = tasks.create_task(_again_and_again(companion))
        try:
            await work()
        finally:
            companion_task.cancel()


async def _again_and_again(companion: Callable[[], Coroutine[None, None, None]]) -> None:
    while True:
        try:
            return await companion()
        except Exception as error:
            log.error("beside the controller: %s; again later", type(error).__name__, exc_info=error)
            await asyncio.sleep(AGAIN_SECONDS)
