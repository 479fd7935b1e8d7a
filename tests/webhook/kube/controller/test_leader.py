"""The behaviour of the leader when part of its work fails, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace

import pytest

from tests.webhook.kube.ledger.api_server import ApiServer, VirtualTime
from webhook.kube.controller import leader
from webhook.kube.controller.leader import (
    AGAIN_SECONDS,
    PAUSE,
    RENEW_WITHIN,
    Leader,
    lease_path,
    with_companion,
)

Work = Callable[[], Coroutine[None, None, None]]


class Scene:
    """A controller and its companion that write down what becomes of them, and fail when they are told to."""

    def __init__(self) -> None:
        self.course: list[str] = []
        self.fails = {"controller": asyncio.Event(), "companion": asyncio.Event()}

    def work(self, name: str) -> Work:
        """The work of one of the two."""

        async def work() -> None:
            self.course.append(f"{name} begins")
            try:
                await self.fails[name].wait()
                self.fails[name].clear()
                raise ValueError(name)
            except asyncio.CancelledError:
                self.course.append(f"{name} is cancelled")
                raise

        return work

    async def led(self) -> None:
        """Both together, as the leader has them."""
        await with_companion(self.work("controller"), self.work("companion"))


def played(script: Callable[[Scene, ApiServer], Coroutine[None, None, None]]) -> list[str]:
    """What becomes of the two in a script, under a leader that is asked to end at its end."""
    server = ApiServer()

    async def play() -> list[str]:
        scene = Scene()
        election = asyncio.create_task(Leader(server.client(), "bayplan-system", scene.led).run())
        await asyncio.sleep(PAUSE / 2)
        await script(scene, server)
        course = list(scene.course)
        election.cancel()
        await asyncio.gather(election, return_exceptions=True)
        assert server.objects[lease_path("bayplan-system")]["spec"]["holderIdentity"] == "", "given up"
        return course

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        return runner.run(play())


def test_a_companion_that_fails_is_told_and_begins_again_and_the_controller_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It restarts after a pause, since the cause may still be there."""

    async def script(scene: Scene, server: ApiServer) -> None:
        scene.fails["companion"].set()
        await asyncio.sleep(AGAIN_SECONDS - PAUSE)
        scene.course.append("a while later")
        await asyncio.sleep(2 * PAUSE)

    assert played(script) == ["controller begins", "companion begins", "a while later", "companion begins"]
    assert "beside the controller: ValueError" in caplog.text


def test_a_controller_that_fails_ends_its_companion_and_both_begin_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Both restart at the leader's next look, and the log has the error."""

    async def script(scene: Scene, server: ApiServer) -> None:
        scene.fails["controller"].set()
        await asyncio.sleep(2 * PAUSE)

    first = ["controller begins", "companion begins", "companion is cancelled"]
    assert played(script) == [*first, "controller begins", "companion begins"]
    assert "controller: ended by" in caplog.text
    assert "ValueError: controller" in caplog.text


def test_both_end_when_another_replica_has_taken_the_lease() -> None:
    """A replica that is not the leader moves nothing."""

    async def script(scene: Scene, server: ApiServer) -> None:
        path = lease_path("bayplan-system")
        spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600}
        server.call("PATCH", path, {"spec": spec})
        await asyncio.sleep(2 * PAUSE)
        server.call("PATCH", path, {"spec": {"holderIdentity": ""}})

    ended = ["controller is cancelled", "companion is cancelled"]
    assert sorted(played(script)[2:]) == sorted(ended)


def test_a_leader_whose_api_server_hangs_stops_before_another_may_lead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each call waits for an answer until it times out: two such calls take longer than the Lease lasts."""
    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr(leader, "time", clock)

    async def play() -> list[str]:
        scene, client = Scene(), ApiServer().client()

        async def hangs(method: str, path: str) -> None:
            await asyncio.sleep(3600)

        election = asyncio.create_task(Leader(client, "bayplan-system", scene.led).run())
        await asyncio.sleep(PAUSE / 2)
        client.before = hangs
        await asyncio.sleep(RENEW_WITHIN - PAUSE / 2 + 0.1)
        course = list(scene.course)
        election.cancel()
        await asyncio.wait([election], timeout=1.0)
        return course

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        assert "controller is cancelled" in runner.run(play())


def test_an_odd_answer_does_not_end_the_election() -> None:
    """The page of a proxy is no Lease. Without a leader, no waiting gang would be admitted any more."""
    server = ApiServer()
    odd = [{}, {"metadata": None}]

    async def play() -> list[str]:
        client, scene = server.client(), Scene()
        read = client.get

        async def get(path: str, **query: str) -> dict[str, object]:
            return odd.pop() if odd else await read(path, **query)

        client.get = get  # type: ignore[method-assign, assignment]
        election = asyncio.create_task(Leader(client, "bayplan-system", scene.work("controller")).run())
        await asyncio.sleep(3 * PAUSE)
        course = list(scene.course)
        election.cancel()
        await asyncio.gather(election, return_exceptions=True)
        return course

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        assert runner.run(play()) == ["controller begins"]


def test_an_election_that_is_cancelled_while_its_work_ends_is_over() -> None:
    """The replica stops just when it has lost the Lease. Otherwise it would never end."""
    server = ApiServer()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)  # for example, it closes its watches

    async def play() -> bool:
        election = asyncio.create_task(Leader(server.client(), "bayplan-system", work).run())
        await asyncio.sleep(PAUSE / 2)
        spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600}
        server.call("PATCH", lease_path("bayplan-system"), {"spec": spec})
        await asyncio.sleep(0.75 * PAUSE)  # it has noticed a quarter of a pause ago, and its work is ending
        election.cancel()
        await asyncio.wait([election], timeout=10 * PAUSE)
        return election.cancelled()

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        assert runner.run(play())
