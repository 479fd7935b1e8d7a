"""An API server that starts knows less than it stores: that is no proof that a kind is absent."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from functools import partial
from typing import Any

import pytest

from tests.planner.ledger.books import whole
from webhook.kube.api import client as client_module
from webhook.kube.api import reflector as reflector_module
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.discovery import served_path
from webhook.kube.api.reflector import Reflector
from webhook.kube.api.store import Store
from webhook.kube.ledger.owners import StoredOwners

GROUP, VERSION = "/apis/kai.scheduler", "/apis/kai.scheduler/v1alpha1"
TOPOLOGIES = f"{VERSION}/topologies"
KAI = {
    "name": "kai.scheduler",
    "preferredVersion": {"version": "v1alpha1"},
    "versions": [{"version": "v1alpha1"}],
}
RACKS = {"metadata": {"name": "racks", "resourceVersion": "3"}}
STARTED: dict[str, Json] = {
    "/apis": {"groups": [KAI]},
    GROUP: KAI,
    VERSION: {"resources": [{"name": "topologies"}]},
    TOPOLOGIES: {"items": [RACKS], "metadata": {"resourceVersion": "9"}},
}
STARTING = ApiError(503, "ServiceUnavailable", "the request has been made before all known HTTP paths")
LISTS_NO_GROUP: dict[str, Json | ApiError] = {
    "/apis": {"groups": []},
    **dict.fromkeys((GROUP, VERSION, TOPOLOGIES), STARTING),
}
"""The answers of a real API server (1.37) in the first seconds of its start."""


class Server(Api):
    """An API server with these answers, or 404. `asked` counts the calls by path."""

    def __init__(self, answers: dict[str, Json | ApiError]) -> None:
        self.answers = answers
        self.asked: Counter[str] = Counter()

    async def get(self, path: str, **query: str) -> Json:
        """The answer at a path."""
        self.asked[path] += 1
        answer = self.answers.get(path, ApiError(404, "", "404 page not found"))
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def list(self, path: str, keep: Any = dict, **query: str) -> tuple[list[Any], str]:
        """One page."""
        page = await self.get(path)
        return list(map(keep, page["items"])), page["metadata"]["resourceVersion"]

    async def watch(self, path: str, version: str, **query: str) -> Any:
        """A watch that the server ends with 410, as after each restart."""
        raise ApiError(410, "Expired", "too old resource version")
        yield


@pytest.fixture(autouse=True)
def _asks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "SHARED_SECONDS", -1.0)


def topologies(api: Api) -> Any:
    """Looks KAI's Topologies up."""
    return served_path(api, "kai.scheduler", "topologies")


@pytest.mark.parametrize(
    ("answers", "path"),
    [
        (STARTED, TOPOLOGIES),
        # Behind a load balancer each answer may come from another server, of which one starts.
        ({**STARTED, "/apis": {"groups": []}}, TOPOLOGIES),
        ({**STARTED, VERSION: ApiError(404, "", "404 page not found")}, TOPOLOGIES),
        ({"/apis": {"groups": []}}, ""),
        ({"/apis": {"groups": [KAI]}}, ""),
        ({"/apis": {"groups": [KAI]}, VERSION: {"resources": [{"name": "others"}]}}, ""),
    ],
    ids=["started", "no group", "no version", "absent group", "absent version", "absent kind"],
)
async def test_a_kind_is_absent_if_its_group_or_the_kind_itself_is(
    answers: dict[str, Json | ApiError], path: str
) -> None:
    """A list without it is not enough."""
    assert await topologies(Server(answers)) == path


@pytest.mark.parametrize(
    "answers",
    [
        LISTS_NO_GROUP,
        {**LISTS_NO_GROUP, "/apis": {"groups": [KAI]}},
        {**STARTED, VERSION: ApiError(404, "", "404 page not found"), TOPOLOGIES: STARTING},
    ],
    ids=["no group", "group", "no version"],
)
async def test_a_server_that_starts_does_not_say_what_is_absent(answers: dict[str, Json | ApiError]) -> None:
    """Its answer is an error, after which the caller asks again."""
    with pytest.raises(ApiError, match="503"):
        await topologies(Server(answers))


async def test_a_group_that_was_there_is_asked_for_again_when_it_is_not_listed() -> None:
    """One that was absent is not: a cluster lacks dozens of groups, which are looked up every few seconds."""
    server = Server({"/apis": {"groups": []}})
    for _ in range(3):
        assert await topologies(server) == ""
    assert server.asked[GROUP] == 1
    server.answers = dict(STARTED)
    assert await topologies(server) == TOPOLOGIES
    assert server.asked[GROUP] == 1
    server.answers = LISTS_NO_GROUP
    with pytest.raises(ApiError, match="503"):
        await topologies(server)


async def test_a_watch_keeps_its_objects_while_the_server_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the Topology, gangs that require a rack would be refused."""
    monkeypatch.setattr(reflector_module, "FIRST_PAUSE", 0.01)
    server, drops = Server(dict(STARTED)), []

    def changed(key: str, _: Any, value: Any) -> None:
        if value is None:
            drops.append(key)

    store: Store[Json] = Store(lambda item, _: item, "Topology", changed, threading.Lock())
    reflector = Reflector(server, "topologies", store, find=partial(topologies, server))
    running = asyncio.create_task(reflector.run())
    try:
        async with asyncio.timeout(5):
            await reflector.synced.wait()
            server.answers, server.asked = LISTS_NO_GROUP, Counter()
            while not server.asked[GROUP]:  # noqa: ASYNC110 - the watch asks by itself
                await asyncio.sleep(0.01)
            server.answers, server.asked = dict(STARTED), Counter()
            while not server.asked[TOPOLOGIES]:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
    finally:
        running.cancel()
        await asyncio.wait([running])
    assert set(store.items) == {"racks"}
    assert drops == []


async def test_no_hold_is_released_because_the_server_starts() -> None:
    """The JobSet that the hold is for may be stored."""
    held = whole("team/JobSet/a", "r1")
    with pytest.raises(ApiError, match="503"):
        await StoredOwners(Server({"/apis": {"groups": []}, "/apis/jobset.x-k8s.io": STARTING}))(held)
