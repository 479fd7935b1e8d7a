"""Connections that say nothing, bodies that do not come, too much at once: honest callers are answered."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import generate_latest

from certs.authority import service_names
from certs.rotation import Rotation
from planner.ledger.sqlite import SqliteLedger
from webhook.cli.common.inputs import policy_store
from webhook.server import connections, http
from webhook.server.connections import (
    FIRST_REQUEST_SECONDS,
    IDLE_SECONDS,
    BytesInFlight,
    Connections,
    Listener,
)
from webhook.server.http import Webhook
from webhook.server.listening import Running, start
from webhook.server.service import Service
from webhook.wire.review import BODY_LIMIT

HEAD = "POST /mutate HTTP/1.1\r\nHost: bayplan\r\nContent-Type: application/json\r\n"


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Running]:
    """The real server on loopback, in plain HTTP."""
    ledger = SqliteLedger(folder / "ledger.db")
    running = await start(Webhook(Service(policy_store(()), ledger)), "127.0.0.1", 0, None)
    try:
        yield running
    finally:
        await running.stop()
        await ledger.close()


async def answer_to(port: int, text: str, *, then: str = "wait") -> str:
    """What the server answers to these bytes, until it closes the connection; `then`: "wait" or "abort"."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode())
    await writer.drain()
    if then == "abort":
        writer.transport.abort()
        return ""
    answer = await asyncio.wait_for(reader.read(4096), 10)
    writer.close()
    return answer.decode()


async def test_a_body_that_does_not_come_is_waited_for_only_briefly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body of ten bytes of which one comes: 408 in words, after the time for bodies."""
    monkeypatch.setattr(http, "BODY_SECONDS", 0.05)
    async with serving(tmp_path) as running:
        answer = await answer_to(running.port, HEAD + "Content-Length: 10\r\n\r\n{")
    assert answer.startswith("HTTP/1.1 408")
    assert "the body was not whole within 0.05 s" in answer


@pytest.mark.parametrize(
    ("header", "status", "words"),
    [
        ("Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 415, "without content encoding"),
        (f"Content-Length: {BODY_LIMIT + 1}\r\n\r\n", 413, f"{BODY_LIMIT + 1} bytes"),
    ],
    ids=["compressed", "too large by its header"],
)
async def test_a_body_that_cannot_be_good_is_not_read(
    tmp_path: Path, header: str, status: int, words: str
) -> None:
    """The answer comes although the body never does."""
    async with serving(tmp_path) as running:
        answer = await answer_to(running.port, HEAD + header)
    assert answer.startswith(f"HTTP/1.1 {status}")
    assert words in answer


async def test_an_aborted_upload_is_no_error_of_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has a line about a bad call, and no traceback."""
    caplog.set_level(logging.INFO)
    async with serving(tmp_path) as running:
        await answer_to(running.port, HEAD + "Content-Length: 100\r\n\r\n{", then="abort")
        for _ in range(100):
            if "hung up" in caplog.text:
                break
            await asyncio.sleep(0.02)
    assert "the caller hung up before its answer" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (HEAD + "Transfer-Encoding: chunked\r\n\r\nzz\r\nsecret", "Invalid character in chunk size"),
        (HEAD + "Content-Length: -5\r\n\r\nsecret", "Invalid character in Content-Length"),
        ("GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + "secret" * 5_000 + "\r\n\r\n", "Got more than"),
        ("\x16\x03\x01secret\r\n\r\n", "Received HTTPS traffic"),
        ("\x05secret\r\n\r\n", "Invalid method encountered"),
    ],
    ids=["chunk", "length", "header", "TLS", "method"],
)
async def test_bytes_that_are_no_http_are_one_line_of_log_without_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: str, reason: str
) -> None:
    """A port scan left a traceback for each call, with what was sent. It counts as a bad call."""
    caplog.set_level(logging.INFO)
    async with serving(tmp_path) as running:
        assert await answer_to(running.port, sent)
        exposed = generate_latest(running.webhook.metrics.registry).decode()
    assert 'bayplan_bad_calls_total{status="400"} 1.0' in exposed
    assert [record.exc_info for record in caplog.records if record.exc_info] == []
    (line,) = [record.getMessage() for record in caplog.records if "no HTTP" in record.getMessage()]
    assert f'"status":400,"message":"no HTTP: {reason}' in line
    assert "secret" not in caplog.text


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the server closes the connection, in order or at once."""
    try:
        return await asyncio.wait_for(reader.read(), 5) == b""
    except ConnectionResetError:
        return True


async def _pong(_: web.BaseRequest) -> web.Response:
    return web.Response(text="pong")


@asynccontextmanager
async def listening(
    limit: int, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Listener, Connections]]:
    """A server that answers everything, with at most `limit` connections."""
    connections = Connections()

    async def answer(request: web.BaseRequest) -> web.Response:
        with connections.answering(request.protocol):
            return await _pong(request)

    server = web.Server(answer)
    listener = Listener(server, connections, tls, limit)
    await listener.open("127.0.0.1", 0)
    try:
        yield listener, connections
    finally:
        await listener.close()
        await server.shutdown(0)


async def test_a_newcomer_takes_the_place_of_the_longest_silent() -> None:
    """Three connections are allowed, three are silent: the fourth is answered, the first is closed."""
    async with listening(limit=3) as (listener, _):
        silent = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(3)]
        await asyncio.sleep(0.05)
        async with aiohttp.ClientSession() as session:
            answer = await session.get(f"http://127.0.0.1:{listener.port}/")
            assert await answer.text() == "pong"
        assert await ended(silent[0][0])
        for reader, writer in silent[1:]:
            assert not reader.at_eof()
            writer.close()


async def test_who_has_been_answered_goes_after_who_never_asked() -> None:
    """A caller between two calls keeps its connection while silent newcomers come and go."""
    async with listening(limit=3) as (listener, _), aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{listener.port}/"
        first = await session.get(url)
        await first.read()
        local = first.connection
        silent = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(8)]
        await asyncio.sleep(0.05)
        again = await session.get(url)
        assert await again.text() == "pong"
        assert session.connector is not None
        assert local is None or not local.closed
        for _, writer in silent:
            writer.close()


async def test_callers_that_stand_in_line_keep_nobody_else_waiting() -> None:
    """Sixty connections are there at once: the event loop has a turn between any two of them."""
    async with listening(limit=64) as (listener, listener_connections):
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        callers = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(60)]
        watching = asyncio.create_task(others())
        async with asyncio.timeout(10):
            while len(listener_connections.new) < 60:  # noqa: ASYNC110 - they are counted as they come
                await asyncio.sleep(0)
        watching.cancel()
        for caller in callers:
            caller.close()
        assert turns >= 60


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    """A server's context, with a certificate for loopback."""
    folder = tmp_path / "certs"
    Rotation(folder, service_names("bayplan", "default", loopback=True)).check(datetime.now(UTC))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context


async def test_of_handshakes_that_do_not_come_the_crowds_are_given_up_first(tls: ssl.SSLContext) -> None:
    """One address has a silent connection, another three; a fifth takes the place of the three's oldest."""
    async with listening(limit=4, tls=tls) as (listener, _):
        silent = []
        for source in ("127.0.0.2", "127.0.0.3", "127.0.0.3", "127.0.0.3"):
            address = (source, 0)
            silent.append(await asyncio.open_connection("127.0.0.1", listener.port, local_addr=address))
            await asyncio.sleep(0.02)
        async with aiohttp.ClientSession() as session:
            answer = await session.get(f"https://127.0.0.1:{listener.port}/", ssl=False)
            assert await answer.text() == "pong"
        assert await ended(silent[1][0])
        assert [reader.at_eof() for reader, _ in silent] == [False, True, False, False]
        for _, writer in silent:
            writer.close()


async def test_a_handshake_that_does_not_come_is_waited_for_only_briefly(
    tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that never begins, nor one that does not go on."""
    monkeypatch.setattr(connections, "HANDSHAKE_SECONDS", 0.05)
    async with listening(limit=4, tls=tls) as (listener, _):
        for begun in (b"", b"\x16\x03\x01"):
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(begun)
            assert await ended(reader)
            writer.close()


async def test_connections_that_begin_no_handshake_delay_no_newcomer(
    tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two are allowed, twenty silent ones come: each is replaced at once, for a pause of a minute is only for
    handshakes that begin."""
    monkeypatch.setattr(connections, "HANDSHAKE_PAUSE", 60.0)
    async with listening(limit=2, tls=tls) as (listener, _):
        silent = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(20)]
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20)) as session:
            answer = await session.get(f"https://127.0.0.1:{listener.port}/", ssl=False)
            assert await answer.text() == "pong"
        for _, writer in silent:
            writer.close()


async def test_a_handshake_at_the_limit_pauses_accepting(
    tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two are allowed and there: a third shakes hands, a fourth is accepted meanwhile, a fifth is not."""
    monkeypatch.setattr(connections, "HANDSHAKE_PAUSE", 60.0)
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with listening(limit=2, tls=tls) as (listener, _):
        opened = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(2)]
        opened.append(await asyncio.open_connection("127.0.0.1", listener.port, ssl=trusting))
        opened += [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(2)]
        assert await ended(opened[0][0])
        assert await ended(opened[1][0])
        replaced = asyncio.create_task(ended(opened[3][0]))
        done, _ = await asyncio.wait([replaced], timeout=0.3)
        replaced.cancel()
        for _, writer in opened:
            writer.transport.abort()
    assert not done, "with the fifth accepted, the fourth is replaced"


class Clock:
    """Monotonic seconds that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Handler:
    """A connection that knows only whether it is open."""

    def __init__(self) -> None:
        self.transport: Transport | None = Transport(self)


class Transport(asyncio.Transport):
    """Closes its handler."""

    def __init__(self, handler: Handler) -> None:
        super().__init__()
        self._handler = handler

    def abort(self) -> None:
        self._handler.transport = None


def test_a_connection_that_never_asks_is_closed_soon_and_one_that_asked_later() -> None:
    """Ten seconds for the first request, two minutes between two."""
    clock = Clock()
    connections = Connections(clock)
    newcomer, regular = Handler(), Handler()
    connections.opened(newcomer)  # type: ignore[arg-type]
    with connections.answering(regular):  # type: ignore[arg-type]
        pass
    clock.now = FIRST_REQUEST_SECONDS + 1
    connections.close_silent()
    assert (newcomer.transport, regular.transport is None) == (None, False)
    clock.now = IDLE_SECONDS + 1
    connections.close_silent()
    assert regular.transport is None


def test_a_connection_that_is_being_answered_is_never_closed() -> None:
    """However long it takes, and however many wait."""
    clock = Clock()
    connections = Connections(clock)
    handler = Handler()
    with connections.answering(handler):  # type: ignore[arg-type]
        clock.now = 10_000
        connections.close_silent()
        assert not connections.close_longest_silent()
    assert handler.transport is not None


async def test_bodies_wait_for_room_in_their_order_and_give_it_back() -> None:
    """A body of six of ten bytes keeps one of five waiting, and a small one behind that one as well."""
    room = BytesInFlight(10, small=0)
    order: list[str] = []

    async def body(name: str, size: int) -> None:
        async with room.holding(size):
            order.append(name)
            await asyncio.sleep(0)

    async with room.holding(6):
        waiting = [asyncio.create_task(body("five", 5)), asyncio.create_task(body("one", 1))]
        await asyncio.sleep(0)
        assert order == []
    await asyncio.gather(*waiting)
    assert order == ["five", "one"]


async def test_a_caller_that_gives_up_waiting_leaves_its_turn_to_the_next() -> None:
    """The one behind it is served although the room is as it was."""
    room = BytesInFlight(10, small=0)
    served = asyncio.Event()

    async def small() -> None:
        async with room.holding(2):
            served.set()

    async with room.holding(6):

        async def large() -> None:
            async with room.holding(9):
                raise AssertionError("there is no room for nine")

        giving_up = asyncio.create_task(large())
        await asyncio.sleep(0)
        behind = asyncio.create_task(small())
        await asyncio.sleep(0)
        giving_up.cancel()
        await asyncio.wait_for(served.wait(), 5)
        await behind


async def test_a_small_body_does_not_wait_behind_large_ones() -> None:
    """There is no room left, and one waits for it: the small one passes both."""
    room = BytesInFlight(10, small=2)
    async with room.holding(10):
        waiting = asyncio.create_task(room.holding(5).__aenter__())
        await asyncio.sleep(0)
        async with asyncio.timeout(5), room.holding(2):
            assert not waiting.done()
        waiting.cancel()


async def test_probes_may_have_a_port_of_their_own(tmp_path: Path) -> None:
    """There they are answered in plain HTTP, and calls are not; at the other port it is the other way."""
    ledger = SqliteLedger(tmp_path / "ledger.db")
    running = await start(Webhook(Service(policy_store(()), ledger)), "127.0.0.1", 0, None, probe_port=0)
    calls, probes = (f"http://127.0.0.1:{port}" for port in (running.port, running.probe_port))
    async with aiohttp.ClientSession() as session:
        for path in ("/healthz", "/readyz", "/metrics"):
            assert (await session.get(probes + path)).status == 200
            assert (await session.get(calls + path)).status == 404
        assert (await session.post(f"{calls}/mutate", json={})).status == 400
        assert (await session.post(f"{probes}/mutate", json={})).status == 404
    await running.stop()
    await ledger.close()


async def test_a_server_that_cannot_have_all_its_addresses_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its host has two addresses, and the second is another program's: the first is free again."""
    ledger = SqliteLedger(tmp_path / "ledger.db")
    with socket.create_server(("127.0.0.2", 0)) as taken:
        port = taken.getsockname()[1]
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")

        async def two_addresses(*_: object, **__: object) -> list[object]:
            return [(*kind, ("127.0.0.1", port)), (*kind, ("127.0.0.2", port))]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", two_addresses)
        before = asyncio.all_tasks()
        with pytest.raises(OSError, match="in use"):
            await start(Webhook(Service(policy_store(()), ledger)), "gpu-admin", port, None)
        assert asyncio.all_tasks() == before
    socket.create_server(("127.0.0.1", port)).close()
    await ledger.close()


async def test_a_listener_that_could_not_open_may_open_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of the first attempt, whose second address no machine has."""
    listener = Listener(web.Server(_pong), Connections(), None)
    loop = asyncio.get_running_loop()
    kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")

    async def two_addresses(*_: object, **__: object) -> list[object]:
        return [(*kind, ("127.0.0.1", 0)), (*kind, ("192.0.2.1", 0))]

    with monkeypatch.context() as patched:
        patched.setattr(loop, "getaddrinfo", two_addresses)
        with pytest.raises(OSError, match="assign"):
            await listener.open("gpu-admin", 0)
    await listener.open("127.0.0.1", 0)
    assert listener.port
    await listener.close()
