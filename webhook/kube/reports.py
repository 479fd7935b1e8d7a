"""Reports in the cluster: what a replica decided, written in batches, independent of the calls that were
answered.

Any number of replicas write the same objects: each write replaces the version that it was made from, or
creates the object. Admission never waits for it: a full queue drops the oldest entries and counts them, and a
failed write is tried again as long as there is room.
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
from webhook.kube.api.reflector import served_path

GROUP, RESOURCE = "openreports.io", "reports"


BATCH_SECONDS = 3.0
"""How long news is collected: one write for a Job and its pods, and at most one per namespace in this
time.
"""


SWEEP_SECONDS = 15.0
"""Interval at which the writer checks whether the reported objects still exist."""


ABSENT_SECONDS = 20.0
"""Interval at which a missing CRD is looked up again."""


QUEUED = 2000
"""Maximum number of queued news, of some kilobytes each."""


CLOSE_SECONDS = 3.0
"""How long a stopping replica may take for its last news: less than its termination grace period."""


TRIES = 8
"""Maximum number of conflicting writers in a batch: more than there are replicas."""


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

    `name`: the name of each Report. `merge`: returns the Report (None if there is none) with the news in it,
    the same object if nothing changes. `objects`: returns its objects, each with the time (seconds since the
    epoch) from which it may be missing; `gone`: the news that an object does not exist any more.
    """

    name: str
    merge: Callable[[Json | None, str, Sequence[AnyNews]], Json | None]
    objects: Callable[[Json], dict[str, float]]
    gone: Callable[[str], AnyNews]


def unreported_decisions() -> Counter:
    """Returns a counter without a registry."""
    return Counter(
        "bayplan_unreported_decisions", "Decisions that no Report in the cluster tells of", registry=None
    )


@dataclass(slots=True)
class ReportWriter(Generic[AnyNews]):
    """Writes Reports: `start` it, `put` decisions, and `close` it.

    `exists`: returns whether an object NAMESPACE/KIND/NAME exists.
    """

    api: Api
    form: ReportForm[AnyNews]
    exists: Callable[[str], bool]
    dropped: Counter = field(default_factory=unreported_decisions)
    path: str = ""
    """The path at which Reports are listed, "" while unknown."""
    absent: bool = False
    """Whether the last lookup found that their kind is not installed. Before a lookup has ended it may be
    installed, so decisions right after the start are kept.
    """
    _task: asyncio.Task[None] | None = None
    _queue: deque[AnyNews] = field(default_factory=deque)
    _objects: dict[str, dict[str, float]] = field(default_factory=dict)
    """By namespace, the objects of the Reports that this replica wrote or read."""
    _missing: frozenset[str] = frozenset()
    """The objects that did not exist at the last check."""

    def put(self, news: AnyNews) -> None:
        """Queues news. Never waits.

        News is also queued while it is unknown whether the kind is installed: replicas look at different
        times, and a decision between the installation and the lookup is reported too.
        """
        self._queue.append(news)
        self._make_room()

    def _make_room(self) -> None:
        while len(self._queue) > QUEUED:
            self._queue.popleft()
            if self.path:
                self.dropped.inc()

    async def start(self) -> None:
        """Starts writing."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stops; queued news is written if that succeeds at once, so that a replica that is replaced loses
        nothing.
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
                await self._write_all()
                last_problem = ""
            except ApiError as error:
                last_problem = _say(f"Reports are not written: {error}", last_problem)
            await asyncio.sleep(BATCH_SECONDS)

    async def _find(self) -> bool:
        """Looks up the kind, and what earlier replicas wrote.

        News from before a lookup that does not find the kind is dropped.
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
        """Removes objects that did not exist at two checks.

        One check is not enough: a pod that is being bound is briefly neither among the waiting nor among the
        running ones.
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
        """Writes what is queued. Raises the last `ApiError`; what could not be written is queued again."""
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
            except Unreachable:  # the other namespaces would wait as long, each
                self._again([*several, *(news for others in by_namespace.values() for news in others)])
                raise
            except ApiError as error:
                failed = error
                # No permission, or the namespace is being deleted: trying again soon is useless.
                if error.status in (403, 404):
                    self.dropped.inc(len(several))
                else:
                    self._again(several)
                if error.status == 404 and not await served_path(self.api, GROUP, RESOURCE):
                    self.path = ""
        if failed is not None:
            raise failed

    def _again(self, several: Sequence[AnyNews]) -> None:
        """Queues the news before what came since."""
        self._queue.extendleft(reversed(several))
        self._make_room()

    async def _write(self, namespace: str, news: Sequence[AnyNews]) -> None:
        """Writes one namespace's Report. Raises `ApiError`, 409 if others were faster each time."""
        folder = _folder(self.path, namespace)
        path = f"{folder}/{self.form.name}"
        for attempt in range(TRIES):
            try:
                before = await self.api.find(path)
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


async def report_of(api: Api, name: str, namespace: str) -> Json | None:
    """Returns the Report of a namespace, None if it has none. Raises `ApiError`."""
    path = await served_path(api, GROUP, RESOURCE)
    return await api.find(f"{_folder(path, namespace)}/{name}") if path else None


def _folder(path: str, namespace: str) -> str:
    """Returns the path of a namespace's Reports; `path`: that of all Reports."""
    return f"{path.removesuffix(RESOURCE)}namespaces/{namespace}/{RESOURCE}"


def _say(problem: str, last_problem: str) -> str:
    """Logs a problem once."""
    if problem != last_problem:
        log.warning("%s", problem)
    return problem
