"""Writes Reports into the cluster: what a replica decided, in batches and apart from the admission calls.

*News* is one decision, or the disappearance of one object. All replicas write the same Reports: each write
replaces exactly the version from which it was computed, or creates the object. Admission never waits for a
write: a full queue drops its oldest news and counts them, and after a failed write the news is queued again
while there is room.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, Protocol, TypeVar

from prometheus_client import Counter

from webhook.kube.api.client import Api, ApiError, Json, Unreachable
from webhook.kube.api.discovery import served_path

GROUP, RESOURCE = "openreports.io", "reports"


BATCH_SECONDS = 3.0
"""The minimum number of seconds between two writes, in which news is collected: a Job and its pods take one
write, and a namespace at most one in this time.
"""


WRITING_SHARE = 0.05
"""The maximum share of the time that is spent on writes, up to `LONGEST_BATCH_SECONDS`. Each write replaces a
whole Report of up to 900 kB: in a burst of pods, one every three seconds took 12 % of the API server's CPU.
"""


LONGEST_BATCH_SECONDS = 15.0
"""The maximum number of seconds between two writes: at 100 decisions a second, fewer than `QUEUED` news."""


SWEEP_SECONDS = 15.0
"""Seconds between two checks whether the reported objects still exist."""


ABSENT_SECONDS = 20.0
"""Seconds between two lookups of a missing CRD."""


QUEUED = 2000
"""Maximum number of queued news, each of some kilobytes."""


CLOSE_SECONDS = 3.0
"""Seconds that a stopping replica may take to write its last news: less than its termination grace period."""


TRIES = 8
"""Maximum number of attempts to write one Report. An attempt fails if another replica writes the Report at
the same time, so this is more than there are replicas.
"""


REFUSALS = (400, 403, 404, 413, 422)
"""The HTTP statuses of a write that would fail again: no permission, no such namespace, or a Report that the
API server does not accept.
"""


log = logging.getLogger("bayplan")


class News(Protocol):
    """News about one object."""

    @property
    def namespace(self) -> str:
        """The object's namespace."""
        ...


AnyNews = TypeVar("AnyNews", bound=News)


@dataclass(frozen=True, slots=True)
class ReportForm(Generic[AnyNews]):
    """How a namespace's Report is built.

    `name`: the name of each Report. `merge`: returns the Report with news merged into it, from the stored
    Report (None if there is none), the namespace and the news; the same object if nothing changes, None if
    there is nothing to store. `objects`: returns the objects in a Report, each with the time (seconds since
    the epoch) from which it may count as missing. `gone`: returns the news that an object does not exist any
    more.
    """

    name: str
    merge: Callable[[Json | None, str, Sequence[AnyNews]], Json | None]
    objects: Callable[[Json], dict[str, float]]
    gone: Callable[[str], AnyNews]


def unreported_decisions() -> Counter:
    """Returns the counter of dropped decisions, without a registry."""
    return Counter(
        "bayplan_unreported_decisions", "Decisions that no Report in the cluster tells of", registry=None
    )


@dataclass(slots=True)
class ReportWriter(Generic[AnyNews]):
    """Writes Reports: `start` it, `put` decisions, and `close` it.

    `exists`: returns whether an object NAMESPACE/KIND/NAME exists. `dropped`: counts the news that no Report
    will contain.
    """

    api: Api
    form: ReportForm[AnyNews]
    exists: Callable[[str], bool]
    dropped: Counter = field(default_factory=unreported_decisions)
    path: str = ""
    """The API path of the Reports of all namespaces, "" while it is unknown."""
    absent: bool = False
    """Whether the last lookup found that the CRD is not installed. False before the first lookup has ended,
    so decisions right after the start are kept.
    """
    _task: asyncio.Task[None] | None = None
    _queue: deque[AnyNews] = field(default_factory=deque)
    _objects: dict[str, dict[str, float]] = field(default_factory=dict)
    """The objects in the Reports that this replica wrote or read, by namespace; values as in
    `ReportForm.objects`.
    """
    _missing: frozenset[str] = frozenset()
    """The objects that did not exist at the last check."""

    def put(self, news: AnyNews) -> None:
        """Queues news; never waits.

        News is also queued while it is unknown whether the CRD is installed: replicas look it up at different
        times, and a decision between the installation and the lookup is to be reported too.
        """
        self._queue.append(news)
        self._make_room()

    def _make_room(self) -> None:
        while len(self._queue) > QUEUED:
            self._queue.popleft()
            if self.path:
                self.dropped.inc()

    async def start(self) -> None:
        """Starts a task that writes until `close`."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stops the task and writes the queued news within `CLOSE_SECONDS`, so that a replica that is
        replaced loses nothing; an error is ignored.
        """
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                if self.path or await self._find():
                    await self._write_all()

    async def _run(self) -> None:
        last_problem = ""
        swept = 0.0
        while True:
            pause = BATCH_SECONDS
            try:
                if not self.path and not await self._find():
                    last_problem = _say(
                        "no Reports are written: the CRD reports.openreports.io is not installed",
                        last_problem,
                    )
                    await asyncio.sleep(ABSENT_SECONDS)
                    continue
                if time.monotonic() - swept > SWEEP_SECONDS:
                    swept = time.monotonic()
                    self._sweep(time.time())
                begun = time.monotonic()
                await self._write_all()
                last_problem, pause = "", pause_after(time.monotonic() - begun)
            except ApiError as error:
                last_problem = _say(f"Reports are not written: {error}", last_problem)
            except Exception as error:  # of an odd answer, for example the JSON of a proxy
                last_problem = _say(f"Reports are not written: {error!r}", last_problem)
            await asyncio.sleep(pause)

    async def _find(self) -> bool:
        """Looks up the path of the Reports, and reads what earlier replicas wrote. Returns False if the CRD
        is missing.

        In that case the news that was queued before the lookup is dropped.
        """
        decided = len(self._queue)
        path = await served_path(self.api, GROUP, RESOURCE)
        if not path:
            self._queue = deque(islice(self._queue, decided, None))
        else:
            query = {"fieldSelector": f"metadata.name={self.form.name}"}
            for namespace, objects in (await self.api.list(path, self._listed, **query))[0]:
                self._objects[namespace] = objects
        self.path, self.absent = path, not path
        return bool(path)

    def _listed(self, item: Json) -> tuple[str, dict[str, float]]:
        return str(item["metadata"].get("namespace", "")), self.form.objects(item)

    def _sweep(self, now: float) -> None:
        """Queues the removal of objects that did not exist at this check and at the one before.

        One check is not enough: a pod that is being bound is briefly neither among the waiting nor among the
        running pods.
        """
        missing = frozenset(
            name
            for objects in self._objects.values()
            for name, since in objects.items()
            if since < now and not self.exists(name)
        )
        for name in sorted(missing & self._missing):
            self.put(self.form.gone(name))
        self._missing = missing

    async def _write_all(self) -> None:
        """Writes the queued news. Raises the last `ApiError`.

        News that was not written is queued again, or dropped after one of the `REFUSALS`, or if the stored
        Report cannot be read.
        """
        batch, self._queue = self._queue, deque()
        by_namespace: dict[str, list[AnyNews]] = defaultdict(list)
        for news in batch:
            by_namespace[news.namespace].append(news)
        failed: ApiError | None = None
        while by_namespace:
            namespace = next(iter(by_namespace))
            several = by_namespace.pop(namespace)
            try:
                await self._write(namespace, several)
            # Other namespaces would wait for the same timeout. After a cancellation, `close` writes them.
            except (Unreachable, asyncio.CancelledError):
                self._again([*several, *(news for others in by_namespace.values() for news in others)])
                raise
            except ApiError as error:
                failed = error
                if error.status in REFUSALS:
                    self.dropped.inc(len(several))
                else:
                    self._again(several)
                if error.status == 404 and not await served_path(self.api, GROUP, RESOURCE):
                    self.path = ""
            except Exception as error:  # an odd Report, which others in the namespace may have written
                self.dropped.inc(len(several))
                log.warning("the Report of namespace %s is not written: %r", namespace, error)
        if failed is not None:
            raise failed

    def _again(self, several: Sequence[AnyNews]) -> None:
        """Puts the news back at the front of the queue."""
        self._queue.extendleft(reversed(several))
        self._make_room()

    async def _write(self, namespace: str, news: Sequence[AnyNews]) -> None:
        """Writes one namespace's Report. Raises `ApiError`, with status 409 if each attempt met a concurrent
        write.
        """
        folder = _folder(self.path, namespace)
        path = f"{folder}/{self.form.name}"
        for attempt in range(TRIES):
            try:
                before = await self.api.find(path)
                if before is None:  # deleted, perhaps with its namespace: nothing to sweep
                    self._objects.pop(namespace, None)
                after = self.form.merge(before, namespace, news)
                if after is None:
                    return
                if before is None:
                    await self.api.create(folder, after)
                elif after is not before:
                    await self.api.replace(path, after)
                self._objects[namespace] = self.form.objects(after)
                return
            except ApiError as error:
                if error.status != 409 or attempt + 1 == TRIES:
                    raise


def pause_after(seconds: float) -> float:
    """Returns for how many seconds news is collected after a write that took `seconds`."""
    return min(max(BATCH_SECONDS, seconds / WRITING_SHARE), LONGEST_BATCH_SECONDS)


async def report_of(api: Api, name: str, namespace: str) -> Json | None:
    """Returns the Report of this name in a namespace, None if there is none. Raises `ApiError`."""
    path = await served_path(api, GROUP, RESOURCE)
    return await api.find(f"{_folder(path, namespace)}/{name}") if path else None


def _folder(path: str, namespace: str) -> str:
    """Returns the API path of a namespace's Reports. `path`: that of the Reports of all namespaces."""
    return f"{path.removesuffix(RESOURCE)}namespaces/{namespace}/{RESOURCE}"


def _say(problem: str, last_problem: str) -> str:
    """Logs a problem if it is not the last one that was logged; returns it."""
    if problem != last_problem:
        log.warning("%s", problem)
    return problem
