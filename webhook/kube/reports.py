"""Reports in the cluster: what a replica decided, written in batches, away from the calls that were answered.

Any number of replicas write the same objects: each write replaces the version that it was made from, or is
made anew. Admission never waits for it: a full queue drops the oldest and counts it, and a write that fails
is tried again for as long as there is room.
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
"""How long news are gathered: of a Job and its pods one write, and at most one in that time a namespace."""


SWEEP_SECONDS = 15.0
"""How often it is looked whether the objects of which is told are still there."""


ABSENT_SECONDS = 20.0
"""How soon a missing CRD is looked for again."""


QUEUED = 2000
"""News that wait to be written, of some kilobytes each."""


CLOSE_SECONDS = 3.0
"""How long a replica that stops takes for its last news: less than it may take to stop."""


TRIES = 8
"""Writers that one may meet in a batch: more than there are replicas."""


log = logging.getLogger("bayplan")


class News(Protocol):
    """What is to be told of one object."""

    @property
    def namespace(self) -> str:
        """Where it is."""
        ...


AnyNews = TypeVar("AnyNews", bound=News)


@dataclass(frozen=True, slots=True)
class ReportForm(Generic[AnyNews]):
    """How a namespace's Report is made.

    `name`: that of each. `merge` gives it with the news in it, the same object (or None, where there is none)
    where they change nothing. `objects` gives the objects in it, each with the time (seconds since the epoch)
    from which on it may be missing; `gone` tells that one is.
    """

    name: str
    merge: Callable[[Json | None, str, Sequence[AnyNews]], Json | None]
    objects: Callable[[Json], dict[str, float]]
    gone: Callable[[str], AnyNews]


def unreported_decisions() -> Counter:
    """A counter on no registry."""
    return Counter(
        "bayplan_unreported_decisions", "Decisions that no Report in the cluster tells of", registry=None
    )


@dataclass(slots=True)
class ReportWriter(Generic[AnyNews]):
    """`start` it, `put` what was decided, and `close` it.

    `exists`: whether an object NAMESPACE/KIND/NAME is there.
    """

    api: Api
    form: ReportForm[AnyNews]
    exists: Callable[[str], bool]
    dropped: Counter = field(default_factory=unreported_decisions)
    path: str = ""
    """Where Reports are listed, "" while that is not known."""
    absent: bool = False
    """Whether the last look found that their kind is not installed. Until a look has ended it may be: what is
    decided right after the start is told too."""
    _task: asyncio.Task[None] | None = None
    _queue: deque[AnyNews] = field(default_factory=deque)
    _objects: dict[str, dict[str, float]] = field(default_factory=dict)
    """The objects of the Reports that were written or read here, by namespace."""
    _missing: frozenset[str] = frozenset()
    """Those that were not there at the last look."""

    def put(self, news: AnyNews) -> None:
        """Have it written some time. Never waits.

        Also while the kind is not known to be there: replicas look for it at different times, and what one of
        them decides after it was installed and before its own look is told too.
        """
        self._queue.append(news)
        self._make_room()

    def _make_room(self) -> None:
        while len(self._queue) > QUEUED:
            self._queue.popleft()
            if self.path:
                self.dropped.inc()

    async def start(self) -> None:
        """Begin to write."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop; what waits is written, if that goes at once: a replica that is replaced loses nothing."""
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
        """Look for the kind, and what former replicas wrote.

        What was decided before a look that does not find the kind had nowhere to be written, and is left out.
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
        """What was not there at two looks is gone.

        One is not enough: a pod that is being bound is for a moment neither among those that wait nor among
        those that run.
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
        """Write what is queued. Raises the last `ApiError`; what could not be written waits again."""
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
            except Unreachable:  # the others would be waited for as long, each
                self._again([*several, *(news for others in by_namespace.values() for news in others)])
                raise
            except ApiError as error:
                failed = error
                if error.status in (403, 404):  # no right, or the namespace goes: it will not be better soon
                    self.dropped.inc(len(several))
                else:
                    self._again(several)
                if error.status == 404 and not await served_path(self.api, GROUP, RESOURCE):
                    self.path = ""
        if failed is not None:
            raise failed

    def _again(self, several: Sequence[AnyNews]) -> None:
        """They wait before what came since."""
        self._queue.extendleft(reversed(several))
        self._make_room()

    async def _write(self, namespace: str, news: Sequence[AnyNews]) -> None:
        """One namespace's Report. Raises `ApiError`, 409 where others were faster each time."""
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
    """The Report of a namespace, None where it has none. Raises `ApiError`."""
    path = await served_path(api, GROUP, RESOURCE)
    return await api.find(f"{_folder(path, namespace)}/{name}") if path else None


def _folder(path: str, namespace: str) -> str:
    """Where the Reports of a namespace are; `path`: those of all."""
    return f"{path.removesuffix(RESOURCE)}namespaces/{namespace}/{RESOURCE}"


def _say(problem: str, last_problem: str) -> str:
    """A line in the log, once."""
    if problem != last_problem:
        log.warning("%s", problem)
    return problem
