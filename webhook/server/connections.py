"""The open connections of the server, within bounds: how many, how long silent, how many bytes at once.

A caller that opens connections and says nothing, or sends a body byte by byte, would otherwise hold memory
and file descriptors for as long as it likes. The API server keeps few connections, and sends at once what it
has.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import chain

from aiohttp import web

MAX_CONNECTIONS = 256
"""Open at once; with TLS and a body on its way each takes up to a megabyte. An API server opens one for each
call in flight, of at most 200 changing requests by its own limit (`--max-mutating-requests-inflight`)."""


HANDSHAKE_SECONDS = 3.0
"""Time for the TLS handshake of a new connection."""


NEWCOMER_SECONDS = 0.004
"""Pause after a newcomer that took another's place: a flood of newcomers, each with a handshake of a
millisecond or two, leaves most of the event loop to those who are there, and each of `MAX_CONNECTIONS`
newcomers has a second before its place is taken in turn."""


FIRST_REQUEST_SECONDS = 10.0
"""Time until a new connection has delivered its first whole request, the handshake included."""


IDLE_SECONDS = 120.0
"""How long a connection may stay open between two calls: more than the 90 s after which Go's HTTP client
closes it, so that the API server does not meet a connection that was closed on it."""


SWEEP_SECONDS = 1.0
"""How often silent connections are looked for."""


ACCEPT_AGAIN_SECONDS = 0.05
"""Pause after a connection that could not be accepted, so that a lack of file descriptors does not spin."""


MAX_BYTES = 16 * 1024 * 1024
"""Bodies of calls that are not answered yet, in bytes. What is read of them takes about ten times as much; a
usual call has 5 to 50 kB."""


SMALL_BYTES = 64 * 1024
"""The largest body that needs no room among `MAX_BYTES`."""


class Connections:
    """Since when each connection of a server has been silent (monotonic seconds), and which goes first.

    `new`: since they were made, without a whole request so far. `idle`: since their last answer. What is in
    `answered` is being answered, and is never closed.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.new: dict[web.RequestHandler, float] = {}
        self.idle: dict[web.RequestHandler, float] = {}
        self.answered: set[web.RequestHandler] = set()
        self._clock = clock

    def opened(self, handler: web.RequestHandler) -> None:
        """A connection was made. Its first request may be faster than this news."""
        if handler not in self.answered and handler not in self.idle:
            self.new[handler] = self._clock()

    @contextmanager
    def answering(self, handler: web.RequestHandler) -> Iterator[None]:
        """While a whole request of this connection is being answered."""
        self.new.pop(handler, None)
        self.idle.pop(handler, None)
        self.answered.add(handler)
        try:
            yield
        finally:
            self.answered.discard(handler)
            if handler.transport is not None:
                self.idle[handler] = self._clock()

    def close_silent(self) -> None:
        """Close what has been silent for too long, and forget what its caller has closed."""
        now = self._clock()
        for silent, seconds in ((self.new, FIRST_REQUEST_SECONDS), (self.idle, IDLE_SECONDS)):
            for handler, since in tuple(silent.items()):
                if handler.transport is None or now - since > seconds:
                    del silent[handler]
                    _close(handler)

    def close_longest_silent(self) -> bool:
        """Close one, first of those that never delivered a request; whether there was one."""
        for silent in (self.new, self.idle):
            while silent:
                handler = next(iter(silent))  # each dictionary is in the order in which they fell silent
                del silent[handler]
                if handler.transport is not None:
                    _close(handler)
                    return True
        return False


def _close(handler: web.RequestHandler) -> None:
    """At once: a caller that does not read would hold up an orderly end."""
    if isinstance(handler.transport, asyncio.Transport):
        handler.transport.abort()


class Listener:
    """Accepts connections for an aiohttp server, at most `limit` at once.

    Where there are so many a new one takes the place of the longest silent: first of those whose handshake is
    not done, of the address that has most of them, then as `Connections` says. Where all are being answered
    it is refused.
    """

    def __init__(
        self,
        server: web.Server,
        connections: Connections,
        tls: ssl.SSLContext | None,
        limit: int = MAX_CONNECTIONS,
    ) -> None:
        self._server = server
        self._connections = connections
        self._tls = tls
        self._limit = limit
        self._sockets: list[socket.socket] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._handshakes: dict[str, dict[asyncio.Task[None], None]] = {}
        """By the caller's address, the longest first."""

    @property
    def port(self) -> int:
        """The port of the first address."""
        return int(self._sockets[0].getsockname()[1])

    async def open(self, host: str, port: int) -> None:
        """Listen on every address of `host`. Raises `OSError` where one cannot be had, and then has none."""
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        with ExitStack() as bound:
            for family, _, _, _, address in dict.fromkeys(addresses):
                chosen = self.port if port == 0 and self._sockets else port
                sock = socket.create_server((address[0], chosen), family=family, backlog=self._limit)
                self._sockets.append(bound.enter_context(sock))
                sock.setblocking(False)
            bound.pop_all()
        # Only now, so that no caller is accepted at one address of a server that does not start.
        self._tasks = [asyncio.create_task(self._accept(sock)) for sock in self._sockets]
        self._tasks.append(asyncio.create_task(self._sweep()))

    async def close(self) -> None:
        """Stop listening. Connections that are made stay."""
        for task in (*self._tasks, *chain(*self._handshakes.values())):
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        for sock in self._sockets:
            sock.close()

    async def _accept(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, (address, *_) = await loop.sock_accept(sock)
            except OSError:  # the caller has gone already, or there are no more file descriptors
                await asyncio.sleep(ACCEPT_AGAIN_SECONDS)
                continue
            crowded = self._number >= self._limit
            if crowded and not self._make_room():
                connection.close()
            else:
                task = asyncio.create_task(self._connect(connection))
                self._handshakes.setdefault(address, {})[task] = None
                task.add_done_callback(partial(self._forget, address))
            # Accepting does not wait by itself while callers stand in line: everybody else would.
            await asyncio.sleep(NEWCOMER_SECONDS if crowded else 0)

    async def _connect(self, connection: socket.socket) -> None:
        """Hand the connection over to the server once its handshake is done."""
        with suppress(OSError, TimeoutError):  # the caller's affair: no certificate, no TLS, gone
            async with asyncio.timeout(HANDSHAKE_SECONDS if self._tls else None):
                if self._tls is not None:
                    await _first_byte(connection)
                _, handler = await asyncio.get_running_loop().connect_accepted_socket(
                    self._server,
                    connection,
                    ssl=self._tls,
                    ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls else None,
                )
            self._connections.opened(handler)

    @property
    def _number(self) -> int:
        return sum(map(len, self._handshakes.values())) + len(self._server.connections)

    def _make_room(self) -> bool:
        if not self._handshakes:
            return self._connections.close_longest_silent()
        address, tasks = max(self._handshakes.items(), key=lambda entry: len(entry[1]))
        task = next(iter(tasks))
        self._forget(address, task)
        return task.cancel()

    def _forget(self, address: str, task: asyncio.Task[None]) -> None:
        """The handshake is over, or is given up."""
        tasks = self._handshakes.get(address, {})
        tasks.pop(task, None)
        if not tasks:
            self._handshakes.pop(address, None)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._connections.close_silent()


async def _first_byte(connection: socket.socket) -> None:
    """Until the caller says something, which costs nothing until then. Closes the connection of one who does
    not, when the wait is cancelled."""
    loop = asyncio.get_running_loop()
    heard = asyncio.Event()
    loop.add_reader(connection, heard.set)
    try:
        await heard.wait()
    except asyncio.CancelledError:
        loop.remove_reader(connection)
        connection.close()
        raise
    loop.remove_reader(connection)


class BytesInFlight:
    """Room for the bodies of calls that are not answered yet; who finds none waits for it, in order.

    Small bodies need none: they are bounded by the number of connections, and are not kept waiting behind
    large ones that may never come.
    """

    def __init__(self, limit: int = MAX_BYTES, small: int = SMALL_BYTES) -> None:
        self._free = limit
        self._small = small
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def holding(self, size: int) -> AsyncIterator[None]:
        """Hold room for `size` bytes, waiting for it as long as the caller's own deadline allows."""
        size = 0 if size <= self._small else size
        if size and (self._waiting or size > self._free):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((size, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # the turn came in the moment of the cancellation
                    self._give(size)
                else:
                    self._waiting = deque(entry for entry in self._waiting if entry[1] is not turn)
                    self._give(0)  # a smaller one behind it may have room
                raise
        else:
            self._free -= size
        try:
            yield
        finally:
            self._give(size)

    def _give(self, size: int) -> None:
        self._free += size
        while self._waiting and self._waiting[0][0] <= self._free:
            waiting, turn = self._waiting.popleft()
            if not turn.done():
                self._free -= waiting
                turn.set_result(None)
