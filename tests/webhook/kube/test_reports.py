"""The writer of Reports writes each result once, even with other writers, and never delays decisions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from webhook.kube import reports
from webhook.kube.api.client import Api, ApiError, Json, Unreachable
from webhook.kube.reports import QUEUED, ReportForm, ReportWriter
from webhook.report.in_cluster import DecisionNews, merged, objects_in

FOLDER = "/apis/openreports.io/v1alpha1/namespaces/{}/reports"


class Store(Api):
    """An API server that has Reports, as far as their writer can tell. `trouble` is raised by each write."""

    def __init__(self) -> None:
        """Empty, and without trouble."""
        self.objects: dict[str, Json] = {}
        self.trouble: ApiError | None = None
        self.installed = True
        self.before_write: Callable[[], None] = lambda: None
        self.written = 0

    async def get(self, path: str, **query: str) -> Json:
        """Discovery, or a Report."""
        if path == "/apis" and self.installed:
            version = {"version": "v1alpha1"}
            return {
                "groups": [{"name": "openreports.io", "preferredVersion": version, "versions": [version]}]
            }
        if path == "/apis/openreports.io/v1alpha1" and self.installed:
            return {"resources": [{"name": "reports"}]}
        if path in self.objects:
            return self.objects[path]
        raise ApiError(404, "NotFound", f"{path} not found")

    async def list(
        self, path: str, keep: Callable[[Json], Any] = dict, **query: str
    ) -> tuple[list[Any], str]:
        """All Reports."""
        return [keep(item) for item in self.objects.values()], "1"

    async def create(self, path: str, body: Mapping[str, Any], **query: str) -> Json:
        """A new one. Raises 409 where it is there."""
        self._check(f"{path}/bayplan", None)
        return self.write(f"{path}/bayplan", body)

    async def replace(self, path: str, body: Mapping[str, Any], **query: str) -> Json:
        """Another one in its place. Raises 409 where it is newer."""
        self._check(path, body["metadata"]["resourceVersion"])
        return self.write(path, body)

    def _check(self, path: str, version: str | None) -> None:
        self.before_write()
        if self.trouble is not None:
            raise self.trouble
        stored = self.objects.get(path)
        if (stored["metadata"]["resourceVersion"] if stored else None) != version:
            raise ApiError(409, "Conflict", "somebody else was faster")

    def write(self, path: str, body: Mapping[str, Any]) -> Json:
        """Store it, as whoever it is."""
        self.written += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.written)}
        self.objects[path] = {**body, "metadata": metadata}
        return self.objects[path]

    def names(self, namespace: str = "research") -> list[str]:
        """The objects of which the namespace's Report tells."""
        report = self.objects.get(f"{FOLDER.format(namespace)}/bayplan", {"results": []})
        return sorted(row["resources"][0]["name"] for row in report["results"])


def news(name: str, namespace: str = "research", second: int = 1) -> DecisionNews:
    """One result of a Job."""
    resource = {"namespace": namespace, "kind": "Job", "name": name}
    moment = {"seconds": second, "nanos": 0}
    entry = {
        "policy": "qos",
        "rule": "mutation",
        "result": "pass",
        "timestamp": moment,
        "resources": [resource],
    }
    return DecisionNews(f"{namespace}/Job/{name}", (entry,))


def form() -> ReportForm[DecisionNews]:
    """That of `serve`."""
    return ReportForm(
        "bayplan",
        lambda document, namespace, several: merged(document, namespace, several, "r"),
        objects_in,
        lambda name: DecisionNews(name, gone=True),
    )


@asynccontextmanager
async def writing(
    store: Store, exists: Callable[[str], bool] = lambda _: True
) -> AsyncIterator[ReportWriter[DecisionNews]]:
    """A writer that has found the kind, or the lack of it."""
    writer = ReportWriter(store, form(), exists)
    await writer.start()
    try:
        if store.installed:
            await until(lambda: bool(writer.path))
        yield writer
    finally:
        await writer.close()


async def until(done: Callable[[], bool]) -> None:
    """Wait until it is so, a second at most."""
    async with asyncio.timeout(5):
        while not done():  # noqa: ASYNC110 - the writer runs beside the test
            await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for."""
    monkeypatch.setattr(reports, "BATCH_SECONDS", 0.01)
    monkeypatch.setattr(reports, "SWEEP_SECONDS", 0.02)
    monkeypatch.setattr(reports, "ABSENT_SECONDS", 0.01)


def unreported(writer: ReportWriter[DecisionNews]) -> float:
    """What the metric counts."""
    (metric,) = writer.dropped.collect()
    return metric.samples[0].value


async def test_what_others_write_meanwhile_stays() -> None:
    """A conflict is met by reading again: both are told."""
    store = Store()
    path = f"{FOLDER.format('research')}/bayplan"
    other = merged(None, "research", [news("theirs")], "r")
    assert other is not None, "it tells of theirs"

    def faster() -> None:
        store.before_write = lambda: None
        store.write(path, other)

    store.before_write = faster
    async with writing(store) as writer:
        writer.put(news("ours"))
        await until(lambda: store.names() == ["ours", "theirs"])


async def test_a_write_that_fails_waits_and_a_namespace_that_goes_is_given_up() -> None:
    """The server does not answer: later it does. What is forbidden, or nowhere, is counted."""
    store = Store()
    async with writing(store) as writer:
        store.trouble = Unreachable("refused")
        writer.put(news("patient"))
        await asyncio.sleep(0.1)
        assert store.names() == []
        store.trouble = None
        await until(lambda: store.names() == ["patient"])
        store.trouble = ApiError(404, "NotFound", 'namespaces "research" not found')
        writer.put(news("late", second=2))
        await until(lambda: unreported(writer) == 1)
        store.trouble = None
        writer.put(news("elsewhere", "inference"))
        await until(lambda: store.names("inference") == ["elsewhere"])


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_report_that_the_api_server_does_not_accept_is_given_up(status: int) -> None:
    """A Report has up to 900 kB, and would else be sent every three seconds for ever."""
    store = Store()
    async with writing(store) as writer:
        store.trouble = ApiError(status, "", "not accepted")
        writer.put(news("refused"))
        await until(lambda: unreported(writer) == 1)


async def test_an_odd_report_in_one_namespace_does_not_keep_the_others_from_theirs() -> None:
    """Others may write Reports of this name; what is not told is counted."""
    store = Store()
    async with writing(store) as writer:
        odd = {"metadata": {"name": "bayplan"}, "results": ["by hand"]}
        store.objects[f"{FOLDER.format('odd')}/bayplan"] = odd
        writer.put(news("first", "odd"))
        writer.put(news("second"))
        await until(lambda: store.names() == ["second"])
        writer.put(news("third", second=2))
        await until(lambda: store.names() == ["second", "third"])
        assert unreported(writer) == 1


async def test_a_full_queue_drops_the_oldest_and_counts_them() -> None:
    """Memory is bounded, whatever the API server does."""
    store = Store()
    async with writing(store) as writer:
        store.trouble = Unreachable("refused")
        for number in range(QUEUED + 7):
            writer.put(news("old" if number < 7 else "new", f"team-{number}"))
        assert unreported(writer) == 7
        store.trouble = None
        await until(lambda: len(store.objects) == QUEUED)
        assert store.names("team-6") == []


async def test_what_two_looks_do_not_find_is_left_out() -> None:
    """A pod that is being bound is for a moment nowhere. What former replicas told is looked after too."""
    store = Store()
    former = merged(None, "research", [news("former")], "r")
    assert former is not None, "it tells of something"
    store.write(f"{FOLDER.format('research')}/bayplan", former)
    looks: dict[str, int] = {}

    def exists(name: str) -> bool:
        looks[name] = looks.get(name, 0) + 1
        return name.endswith("stays") or (name.endswith("bound") and looks[name] % 2 == 0)

    async with writing(store, exists) as writer:
        writer.put(news("stays"))
        writer.put(news("bound"))
        await until(lambda: store.names() == ["bound", "stays"])
        await until(lambda: looks.get("research/Job/bound", 0) > 6)
        assert store.names() == ["bound", "stays"]


async def test_of_what_was_decided_while_the_kind_was_missing_only_what_follows_the_last_look_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is decided before a look is told by metrics and the audit log; after it, the kind may be there."""
    store = Store()
    store.installed = False
    looks = 0

    async def look(path: str, **query: str) -> Json:
        nonlocal looks
        looks += path == "/apis"
        return await Store.get(store, path, **query)

    monkeypatch.setattr(store, "get", look)
    async with writing(store) as writer:
        writer.put(news("early"))
        before = looks
        await until(lambda: looks > before)
        monkeypatch.setattr(reports, "ABSENT_SECONDS", 0.5)
        before = looks
        await until(lambda: looks > before)
        store.installed = True
        writer.put(news("between"))
        assert not writer.path
        await until(lambda: store.names() == ["between"])
        assert unreported(writer) == 0


async def test_a_replica_that_stops_writes_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade loses nothing."""
    store = Store()
    async with writing(store) as writer:
        monkeypatch.setattr(reports, "BATCH_SECONDS", 60.0)
        await asyncio.sleep(0.05)
        writer.put(news("last"))
    assert store.names() == ["last"]


async def test_the_objects_of_a_namespace_that_is_deleted_are_not_looked_for_for_ever() -> None:
    """Its Report went with it. Each check would queue the removal of all its objects again, and in the end
    that would push decisions out of the queue.
    """
    store = Store()
    looks: list[str] = []

    def exists(name: str) -> bool:
        looks.append(name)
        return bool(store.objects)

    async with writing(store, exists) as writer:
        writer.put(news("train"))
        await until(lambda: looks.count("research/Job/train") > 1)
        store.objects.clear()
        await asyncio.sleep(0.5)
        looks.clear()
        await asyncio.sleep(0.3)
        assert looks == []


def test_writing_takes_at_most_a_twentieth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower a write was, the longer news is collected, from the shortest to the longest batch."""
    monkeypatch.setattr(reports, "BATCH_SECONDS", 3.0)
    assert [reports.pause_after(seconds) for seconds in (0.0, 0.1, 0.5, 60.0)] == [3.0, 3.0, 10.0, 15.0]


async def test_after_a_slow_write_the_news_of_many_decisions_takes_one_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here the first write is slow enough for the longest pause, which only the writer's end cuts short."""
    store = Store()
    store.before_write = lambda: monkeypatch.setattr(reports, "WRITING_SHARE", 1e-9)
    async with writing(store) as writer:
        writer.put(news("first"))
        await until(lambda: store.names() == ["first"])
        for number in range(20):
            writer.put(news(f"later-{number}"))
            await asyncio.sleep(0)
        assert store.names() == ["first"]
    assert len(store.names()) == 21
    assert store.written == 2


async def test_a_writer_that_is_stopped_while_it_writes_loses_nothing() -> None:
    """What it has taken from the queue is written at its end, of each namespace."""
    store, begun = Store(), asyncio.Event()
    writer = ReportWriter(store, form(), lambda _: True)
    create = store.create

    async def hangs(path: str, body: Mapping[str, Any], **query: str) -> Json:
        store.create = create  # type: ignore[method-assign]
        begun.set()
        return await asyncio.Event().wait()  # type: ignore[return-value]

    store.create = hangs  # type: ignore[method-assign]
    writer.put(news("a"))
    writer.put(news("b", "training"))
    await writer.start()
    await begun.wait()
    await writer.close()
    assert (store.names(), store.names("training")) == (["a"], ["b"])
