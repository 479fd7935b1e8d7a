"""Limits the server's open connections: their number, how long they may be silent, and the bytes in flight.

Without these limits, a client that opens connections and sends nothing, or sends a body byte by byte, could
occupy memory and file descriptors without end. The API server opens few connections, and sends its data at
once.
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
"""The maximum number of open connections. Each takes up to a megabyte, with TLS and a body. An API server
opens one for each call in flight, and handles at most 200 changing requests at once
(`--max-mutating-requests-inflight`).
"""


HANDSHAKE_SECONDS = 3.0
"""Seconds for the TLS handshake of a new connection."""


HANDSHAKE_PAUSE = 0.004
"""Seconds for which no connection is accepted after a handshake has begun while the limit is reached. A
handshake takes a millisecond or two, so a flood of new connections leaves most of the event loop's time to
existing ones. And each of `MAX_CONNECTIONS` new connections has about a second (256 times 4 ms) before a
newer one replaces it.
"""


ACCEPT_PAUSE = 0.00025
"""Seconds to pause after each accepted connection while the limit is reached; about twice the time that
accepting takes. A connection whose client never begins a handshake costs only this pause, so even a full
kernel queue of them is emptied in about 0.1 s. It must not fill up: the kernel drops new connections while it
is full, and their clients, the API server among them, try again only after a second.
"""


SHORTEST_PAUSE = 0.001
"""The shortest pause in seconds. Shorter ones are added up, because the event loop cannot sleep for less."""


FIRST_REQUEST_SECONDS = 10.0
"""Seconds from the end of the handshake until the first whole request of a new connection must have arrived.
"""


IDLE_SECONDS = 120.0
"""Seconds that a connection may be silent between two calls. Go's HTTP client closes an idle connection after
90 s; this is longer, so that the API server never uses a connection that this server has just closed.
"""


SWEEP_SECONDS = 1.0
"""Seconds between two searches for silent connections."""


ACCEPT_AGAIN_SECONDS = 0.05
"""Seconds to wait after a connection could not be accepted, so that a lack of file descriptors causes no busy
loop.
"""


MAX_BYTES = 16 * 1024 * 1024
"""The maximum total size in bytes of the bodies of all calls that are not answered yet. The parsed data takes
about ten times as much. A usual call has 5 to 50 kB.
"""


SMALL_BYTES = 64 * 1024
"""The size in bytes up to which a body does not count toward `MAX_BYTES`."""


class Connections:
    """Records since when each connection of a server is silent (monotonic seconds), and closes silent ones.

    `new`: for each connection that has not delivered a whole request yet, the time at which it was opened.
    `idle`: for each connection between two requests, the time of the last answer. `answered`: connections
    with a request that is being answered now; these are never closed.
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
        """Closes the connection that is silent for longest, preferably one that never delivered a request.

        Returns False if there is no silent connection.
        """
        for silent in (self.new, self.idle):
            while silent:
                # The first is silent for longest: each dictionary is ordered by that time.
                handler = next(iter(silent))
                del silent[handler]
                if handler.transport is not None:
                    _close(handler)
                    return True
        return False


def _close(handler: web.RequestHandler) -> None:
    """Aborts the connection: an orderly shutdown would wait for a client that may not read."""
    if isinstance(handler.transport, asyncio.Transport):
        handler.transport.abort()


class Listener:
    """Accepts connections for an aiohttp server, at most `limit` at once.

    If the limit is reached, a new connection replaces an open one: the oldest unfinished handshake of the
    client address that has most of them; without any, the connection that is silent for longest
    (`Connections.close_longest_silent`). If all are being answered, the new connection is closed.
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
        """Seconds of pauses in accepting that have not been made yet."""
        self._handshakes: dict[str, dict[asyncio.Task[None], None]] = {}
        """The unfinished handshakes by the client's address, the oldest first."""

    @property
    def port(self) -> int:
        """The port number of the first address."""
        return int(self._sockets[0].getsockname()[1])

    async def open(self, host: str, port: int) -> None:
        """Listens on every address of `host`.

        If one of them is not available, raises `OSError` and listens on none.
        """
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        sockets: list[socket.socket] = []
        with ExitStack() as bound:
            for family, _, _, _, address in dict.fromkeys(addresses):
                sock = socket.create_server((address[0], port), family=family, backlog=self._limit)
                sockets.append(bound.enter_context(sock))
                sock.setblocking(False)
                port = sock.getsockname()[1]  # if it was 0: the one that the kernel chose, for all addresses
            bound.pop_all()
        self._sockets = sockets
        # Accept after all ports are bound, so that a server that fails to start has answered no client.
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
            except OSError:  # the client has hung up already, or there are no free file descriptors
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
            # Sleep even for 0 s: while clients are queued, `sock_accept` never yields to other tasks.
            await asyncio.sleep(self._take_pause())

    async def _connect(self, connection: socket.socket) -> None:
        """Makes the TLS handshake, and then gives the connection to the server."""
        with suppress(OSError, TimeoutError):  # the client has no certificate, speaks no TLS, or hung up
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
        """Returns the seconds to pause now, and resets them; 0 while they are fewer than `SHORTEST_PAUSE`."""
        if self._pause < SHORTEST_PAUSE:
            return 0.0
        pause, self._pause = self._pause, 0.0
        return pause

    @property
    def _crowded(self) -> bool:
        """Whether the number of connections, with unfinished handshakes, has reached the limit."""
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
    """Waits until the client has sent a byte. Closes the connection if the wait is cancelled.

    So a client that sends nothing costs no TLS state and no pause for a handshake.
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
    """Limits the total size of the bodies of calls that are not answered yet. Calls wait for room in order.

    Small bodies need no room: their number is limited by that of connections, and so they need not wait for
    large bodies that may never arrive.
    """

    def __init__(self, limit: int = MAX_BYTES, small: int = SMALL_BYTES) -> None:
        self._free = limit
        self._small = small
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def holding(self, size: int) -> AsyncIterator[None]:
        """A context that holds room for `size` bytes. Waits for the room until the caller's deadline cancels
        it.
        """
        size = 0 if size <= self._small else size
        if size and (self._waiting or size > self._free):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((size, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # it got its room at the moment of the cancellation
                    self._give(size)
                else:
                    self._waiting = deque(entry for entry in self._waiting if entry[1] is not turn)
                    self._give(0)  # a smaller body that waits after it may have room
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
