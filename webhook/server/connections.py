"""Limits the server's open connections: their number, how long they may be silent, and the bytes in flight.

Otherwise a caller that opens connections and sends nothing, or sends a body byte by byte, could hold memory
and file descriptors as long as it likes. The API server opens few connections, and sends its data at once.
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
"""Maximum number of open connections; with TLS and a body each takes up to a megabyte. An API server opens
one per call in flight, and limits changing requests to 200 (`--max-mutating-requests-inflight`).
"""


HANDSHAKE_SECONDS = 3.0
"""Time for the TLS handshake of a new connection."""


HANDSHAKE_PAUSE = 0.004
"""Pause in accepting for each handshake that begins at the limit. A flood of new connections, each with a
handshake of a millisecond or two, then leaves most of the event loop to existing ones, and each of
`MAX_CONNECTIONS` new ones has a second before it is replaced itself.
"""


ACCEPT_PAUSE = 0.00025
"""Pause in accepting for each connection that is accepted at the limit: about twice what it costs. If callers
never begin a handshake, the queue of connections that wait to be accepted moves this fast. With the pause for
a handshake in its place, a new connection of the API server waited a second in that queue, or longer: the
kernel drops connections while the queue is full, and the caller repeats them after a second.
"""


SHORTEST_PAUSE = 0.001
"""Pauses are added up until they reach this: the event loop does not sleep for less."""


FIRST_REQUEST_SECONDS = 10.0
"""Time for a new connection to deliver its first whole request, including the handshake."""


IDLE_SECONDS = 120.0
"""How long a connection may stay open between two calls: more than the 90 s after which Go's HTTP client
closes it, so that the API server never uses a connection that the server has just closed.
"""


SWEEP_SECONDS = 1.0
"""Interval between searches for silent connections."""


ACCEPT_AGAIN_SECONDS = 0.05
"""Pause after a connection could not be accepted, so that a lack of file descriptors causes no busy loop."""


MAX_BYTES = 16 * 1024 * 1024
"""Maximum bytes of bodies of calls that are not answered yet. The parsed data takes about ten times as much;
a usual call has 5 to 50 kB.
"""


SMALL_BYTES = 64 * 1024
"""The largest body that does not count toward `MAX_BYTES`."""


class Connections:
    """How long each connection of a server has been silent (monotonic seconds), and which is closed first.

    `new`: connections without a whole request so far, with their start. `idle`: connections after an answer,
    with its time. Connections in `answered` are being answered and are never closed.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.new: dict[web.RequestHandler, float] = {}
        self.idle: dict[web.RequestHandler, float] = {}
        self.answered: set[web.RequestHandler] = set()
        self._clock = clock

    def opened(self, handler: web.RequestHandler) -> None:
        """Records a new connection. Its first request may have arrived before this call."""
        if handler not in self.answered and handler not in self.idle:
            self.new[handler] = self._clock()

    @contextmanager
    def answering(self, handler: web.RequestHandler) -> Iterator[None]:
        """Marks the connection as busy while a whole request is being answered."""
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
        """Closes connections that have been silent for too long, and forgets closed ones."""
        now = self._clock()
        for silent, seconds in ((self.new, FIRST_REQUEST_SECONDS), (self.idle, IDLE_SECONDS)):
            for handler, since in tuple(silent.items()):
                if handler.transport is None or now - since > seconds:
                    del silent[handler]
                    _close(handler)

    def close_longest_silent(self) -> bool:
        """Closes one connection, preferably one that never delivered a request; returns whether there was
        one.
        """
        for silent in (self.new, self.idle):
            while silent:
                handler = next(
                    iter(silent)
                )  # each dictionary is ordered by the time at which the connections fell silent
                del silent[handler]
                if handler.transport is not None:
                    _close(handler)
                    return True
        return False


def _close(handler: web.RequestHandler) -> None:
    """Closes the connection at once: an orderly shutdown would wait for a caller that does not read."""
    if isinstance(handler.transport, asyncio.Transport):
        handler.transport.abort()


class Listener:
    """Accepts connections for an aiohttp server, at most `limit` at once.

    At the limit a new connection replaces the one that has been silent longest: first one whose handshake is
    not done, of the address with most of them, then as in `Connections`. If all are being answered, the new
    one is refused.
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
        self._pause = 0.0
        """Seconds for which accepting has yet to pause."""
        self._handshakes: dict[str, dict[asyncio.Task[None], None]] = {}
        """By the caller's address, the longest-running first."""

    @property
    def port(self) -> int:
        """The port of the first address."""
        return int(self._sockets[0].getsockname()[1])

    async def open(self, host: str, port: int) -> None:
        """Listens on every address of `host`. Raises `OSError`, and then listens on none, if an address is
        not available.
        """
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        with ExitStack() as bound:
            for family, _, _, _, address in dict.fromkeys(addresses):
                chosen = self.port if port == 0 and self._sockets else port
                sock = socket.create_server((address[0], chosen), family=family, backlog=self._limit)
                self._sockets.append(bound.enter_context(sock))
                sock.setblocking(False)
            bound.pop_all()
        # Only now, so that a server that fails to start accepts no caller at another address.
        self._tasks = [asyncio.create_task(self._accept(sock)) for sock in self._sockets]
        self._tasks.append(asyncio.create_task(self._sweep()))

    async def close(self) -> None:
        """Stops listening. Existing connections stay open."""
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
            crowded = self._crowded
            if crowded:
                self._pause += ACCEPT_PAUSE
            if crowded and not self._make_room():
                connection.close()
            else:
                task = asyncio.create_task(self._connect(connection))
                self._handshakes.setdefault(address, {})[task] = None
                task.add_done_callback(partial(self._forget, address))
            # Accepting does not wait while callers are queued, which would block everything else.
            await asyncio.sleep(self._take_pause())

    async def _connect(self, connection: socket.socket) -> None:
        """Hands the connection over to the server once its handshake is done."""
        with suppress(OSError, TimeoutError):  # faults of the caller: no certificate, no TLS, gone
            async with asyncio.timeout(HANDSHAKE_SECONDS if self._tls else None):
                if self._tls is not None:
                    await _first_byte(connection)
                    if self._crowded:
                        self._pause += HANDSHAKE_PAUSE
                _, handler = await asyncio.get_running_loop().connect_accepted_socket(
                    self._server,
                    connection,
                    ssl=self._tls,
                    ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls else None,
                )
            self._connections.opened(handler)

    def _take_pause(self) -> float:
        """Returns the seconds to pause now; 0 while they are fewer than `SHORTEST_PAUSE`."""
        if self._pause < SHORTEST_PAUSE:
            return 0.0
        pause, self._pause = self._pause, 0.0
        return pause

    @property
    def _crowded(self) -> bool:
        """Whether there are as many connections as allowed."""
        handshakes = sum(map(len, self._handshakes.values()))
        return handshakes + len(self._server.connections) >= self._limit

    def _make_room(self) -> bool:
        if not self._handshakes:
            return self._connections.close_longest_silent()
        address, tasks = max(self._handshakes.items(), key=lambda entry: len(entry[1]))
        task = next(iter(tasks))
        self._forget(address, task)
        return task.cancel()

    def _forget(self, address: str, task: asyncio.Task[None]) -> None:
        """Removes a handshake that is finished or given up."""
        tasks = self._handshakes.get(address, {})
        tasks.pop(task, None)
        if not tasks:
            self._handshakes.pop(address, None)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._connections.close_silent()


async def _first_byte(connection: socket.socket) -> None:
    """Waits until the caller sends something, which costs nothing until then. Closes the connection if the
    wait is cancelled.
    """
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
    """Room for the bodies of calls that are not answered yet; a call without room waits, in order.

    Small bodies need no room: the number of connections bounds them, and they are not delayed by large ones
    that may never arrive.
    """

    def __init__(self, limit: int = MAX_BYTES, small: int = SMALL_BYTES) -> None:
        self._free = limit
        self._small = small
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def holding(self, size: int) -> AsyncIterator[None]:
        """Holds room for `size` bytes; waits for it until the caller's own deadline."""
        size = 0 if size <= self._small else size
        if size and (self._waiting or size > self._free):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((size, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # the turn came at the moment of the cancellation
                    self._give(size)
                else:
                    self._waiting = deque(entry for entry in self._waiting if entry[1] is not turn)
                    self._give(0)  # a smaller body behind it may have room
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
