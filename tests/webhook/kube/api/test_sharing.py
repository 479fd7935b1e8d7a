"""What one client asks the API server, and through which proxy."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client as generated

from webhook.kube.api import client as module
from webhook.kube.api.client import Api, ApiError
from webhook.kube.api.discovery import served_path

BATCH = {"name": "batch", "preferredVersion": {"version": "v1"}, "versions": [{"version": "v1"}]}


@dataclass
class Server:
    """An API server that serves Jobs. `asked` counts the calls by path; `status`: of each answer."""

    asked: Counter[str] = field(default_factory=Counter)
    status: int = 200
    address: str = ""

    async def respond(self, request: web.Request) -> web.Response:
        """Answers discovery."""
        self.asked[request.path] += 1
        await asyncio.sleep(0.01)
        answers = {"/apis": {"groups": [BATCH]}, "/apis/batch/v1": {"resources": [{"name": "jobs"}]}}
        if request.path not in answers and self.status == 200:
            return web.json_response({}, status=404)
        return web.json_response(answers.get(request.path, {}), status=self.status)

    @asynccontextmanager
    async def client(self, host: str = "") -> AsyncIterator[Api]:
        """A client of this server, or of another address."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.respond)
        async with TestServer(app) as server:
            self.address = str(server.make_url("")).rstrip("/")
            api = Api(generated.Configuration(host=host or self.address))
            yield api
            await api.close()


async def test_watches_that_look_for_missing_kinds_share_the_list_of_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thirty at the same moment, of as many groups: one call, and one more for the group that is served. The
    first time each missing group is asked for by itself.
    """
    monkeypatch.setattr(module, "SHARED_SECONDS", 0.25)
    server = Server()
    async with server.client() as api:

        async def look() -> list[str]:
            looks = [served_path(api, f"g{number}.io", "things") for number in range(30)]
            looks += [served_path(api, f"g{number}.io", "others") for number in range(30)]
            looks += [served_path(api, "batch", "jobs"), served_path(api, "batch", "cronjobs")]
            return await asyncio.gather(*looks)

        assert await look() == [*[""] * 60, "/apis/batch/v1/jobs", ""]
        by_themselves = {f"/apis/g{number}.io": 1 for number in range(30)}
        assert server.asked == {"/apis": 1, "/apis/batch/v1": 1} | by_themselves
        server.asked.clear()
        await asyncio.sleep(0.3)
        assert await look() == [*[""] * 60, "/apis/batch/v1/jobs", ""]
    assert server.asked == {"/apis": 1, "/apis/batch/v1": 1}


async def test_an_installed_kind_is_seen_when_the_shared_answer_is_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A CRD may be installed at any time."""
    monkeypatch.setattr(module, "SHARED_SECONDS", 0.05)
    server = Server()
    async with server.client() as api:
        assert await served_path(api, "batch", "jobs")
        await asyncio.sleep(0.06)
        assert await served_path(api, "batch", "jobs")
    assert server.asked["/apis"] == 2


async def test_a_failed_call_is_shared_by_those_that_wait_for_it_alone() -> None:
    """The next one asks again, for the server may be back."""
    server = Server(status=503)
    async with server.client() as api:
        outcomes = await asyncio.gather(*(api.get_shared("/apis") for _ in range(2)), return_exceptions=True)
        assert all(isinstance(error, ApiError) and error.status == 503 for error in outcomes)
        server.status = 200
        assert await api.get_shared("/apis")
    assert server.asked["/apis"] == 2


async def test_a_caller_that_gives_up_ends_no_others_call() -> None:
    """Of two that share a call, the first is cancelled."""
    server = Server()
    async with server.client() as api:
        first, second = (asyncio.create_task(api.get_shared("/apis")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second)["groups"]
    assert first.cancelled()


async def test_the_proxy_of_the_environment_is_used_unless_the_server_is_excluded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As kubectl does: $HTTP_PROXY, and $NO_PROXY."""
    proxy = Server()
    for name in ("http_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with proxy.client() as direct:
        monkeypatch.setenv("http_proxy", proxy.address)
        through = Api(generated.Configuration(host="http://api.example"))
        assert await served_path(through, "batch", "jobs")
        await through.close()
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        for api in (direct, Api(generated.Configuration(host=proxy.address))):
            assert await served_path(api, "batch", "jobs")
            await api.close()


@pytest.mark.parametrize("excluded", ["fd00::1", "[fd00::1]", "[fd00::1]:443", "fd00::2"])
async def test_a_server_with_an_ipv6_address_is_excluded_from_the_proxy_in_each_spelling(
    monkeypatch: pytest.MonkeyPatch, excluded: str
) -> None:
    """Without brackets, with them, and with the port."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", excluded)
    configuration = generated.Configuration(host="https://[fd00::1]:443")
    await Api(configuration).close()
    assert configuration.proxy == ("http://proxy.example:3128" if excluded == "fd00::2" else None)


@pytest.mark.parametrize(
    ("host", "excluded", "direct"),
    [
        ("https://10.96.0.1:443", "10.0.0.0/8,.svc", True),
        ("https://10.96.0.1:443", " fd00::/8 , 10.96.0.1/12", True),
        ("https://10.96.0.1:443", "192.168.0.0/16,.svc", False),
        ("https://[fd00::1]:443", "fd00::/8", True),
        ("https://api.example:443", "10.0.0.0/8", False),
        ("https://127.0.0.1:6443", "", True),
        ("https://[::1]:6443", "", True),
        ("https://localhost:6443", "", True),
    ],
)
async def test_networks_and_this_machine_need_no_proxy(
    monkeypatch: pytest.MonkeyPatch, host: str, excluded: str, direct: bool
) -> None:
    """As in kubectl. The address of the API server in a cluster is excluded as a network, and a cluster on
    this machine, such as kind, not at all.
    """
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", excluded)
    configuration = generated.Configuration(host=host)
    await Api(configuration).close()
    assert configuration.proxy == (None if direct else "http://proxy.example:3128")


async def test_a_failure_that_nobody_waits_for_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Its only caller has been cancelled; asyncio would log a traceback."""
    server = Server(status=503)
    async with server.client() as api:
        caller = asyncio.create_task(api.get_shared("/apis"))
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.sleep(0.1)
        again = asyncio.create_task(api.get_shared("/apis"))
        await asyncio.sleep(0)
        again.cancel()
    gc.collect()
    await asyncio.sleep(0)
    assert server.asked["/apis"] >= 1
    assert not caplog.records


async def test_a_password_in_netrc_is_none_for_the_api_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With a default entry, each call with a token failed."""
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("default login ann password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with Server(status=404).client() as api:
        with pytest.raises(ApiError, match="404"):
            await api.create_as("token", "/apis/x", {})
