"""Serves the live page over HTTP: its files, an event stream for each viewer, and bandwidth estimates.

All routes are read-only. The headers of every response forbid the browser to run or load anything but the
page's own files. The stream consists of Server-Sent Events, which the page reads with `fetch`, because the
browser's `EventSource` cannot send a token.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from webhook.report import html
from webhook.server.connections import IDLE_SECONDS, Connections, Listener
from webhook.ui.access import ViewerAccess
from webhook.ui.feed import NOTHING, Feed
from webhook.ui.gate import Gate, NotAuthenticatedError
from webhook.ui.worth import worth_of

STATIC = Path(__file__).parent / "static"
REPORT_STYLE = Path(html.__file__).with_name("style.css")
FILES = {path.name: path for path in STATIC.iterdir()} | {"base.css": REPORT_STYLE}
"""The path of each static file by name. The page's style is based on that of the HTML report."""

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

MAX_VIEWERS = 64
"""The maximum number of open streams. Each buffers at most one unread event, of a few megabytes."""

MAX_CONNECTIONS = 256
"""The maximum number of connections. A browser opens up to six."""

STALLED_SECONDS = 20.0
"""Seconds in which a browser must read an event, or its stream is closed. The largest event, with 10,000
nodes, has a few megabytes.
"""

HEARTBEAT_SECONDS = 15.0
"""Seconds without an event after which a comment is sent. It keeps proxies from closing the idle stream,
and shows whether the browser is still connected.
"""

WORTHS_AT_ONCE = 2
"""The maximum number of concurrent bandwidth estimates, because each searches all nodes."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

log = logging.getLogger("bayplan")


@dataclass(slots=True)
class Page:
    """The HTTP handlers. `limit`: the maximum number of streams; `viewers`: the number of open ones.
    `stalled_seconds`: see `STALLED_SECONDS`.
    """

    feed: Feed
    gate: Gate
    limit: int = MAX_VIEWERS
    stalled_seconds: float = STALLED_SECONDS
    connections: Connections = field(default_factory=Connections)
    viewers: int = 0
    _worths: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WORTHS_AT_ONCE))

    def app(self) -> web.Application:
        """Returns the aiohttp application."""
        app = web.Application(middlewares=[self._guard], client_max_size=1024)
        app.router.add_get("/", self._file)
        app.router.add_get("/static/{name}", self._file)
        app.router.add_get("/api/events", self._events)
        app.router.add_get("/api/worth", self._worth)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answers errors with an HTTP status and a line of text, never with a traceback."""
        with self.connections.answering(request.protocol):
            try:
                return await handler(request)
            except NotAuthenticatedError as error:
                return _text(error.status, str(error))
            except web.HTTPException as error:
                return _text(error.status, error.text or error.reason)
            except Exception as error:  # unexpected: the viewer gets one line, the log the traceback
                log.error("%s: %s", request.path, type(error).__name__, exc_info=error)
                return _text(500, "an internal error; the log of the page's server has it")

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "index.html")
        path = FILES.get(name)
        if path is None:
            raise web.HTTPNotFound(text="there is no such page")
        headers = {**HEADERS, "Cache-Control": "no-cache"}
        return web.Response(
            body=path.read_bytes(), content_type=TYPES[path.suffix], charset="utf-8", headers=headers
        )

    async def _healthz(self, _: web.Request) -> web.Response:
        return _text(200, "ok")

    async def _readyz(self, _: web.Request) -> web.Response:
        return _text(200, "ok") if self.feed.version else _text(503, "the cluster is being read")

    async def _access(self, request: web.Request) -> ViewerAccess:
        """Returns what the viewer may see, by the bearer token of the request. Raises
        `NotAuthenticatedError`.
        """
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return await self.gate.access(token if scheme.lower() == "bearer" else "", self.feed.namespaces)

    async def _worth(self, request: web.Request) -> web.Response:
        """Answers with the bandwidth estimate of a gang; with 404 if the viewer may not see it, as if it
        did not exist.
        """
        access, name = await self._access(request), request.query.get("gang", "")
        picture = self.feed.picture
        gangs = picture.standing.gangs if picture is not None and access.sees(name) else ()
        gang = next((gang for gang in gangs if gang.name == name), None)
        if gang is None or picture is None:
            raise web.HTTPNotFound(text="there is no such gang, or it is not yours to see")
        async with self._worths:
            worth = await asyncio.to_thread(worth_of, picture.standing.snapshot, gang)
        headers = {**HEADERS, "Cache-Control": "no-store"}
        return web.Response(body=orjson.dumps(worth), content_type="application/json", headers=headers)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Sends the whole document and then its changes, until the browser disconnects, stops reading, or
        loses its access.
        """
        access = await self._access(request)
        with self._place():
            headers = {**HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            response = web.StreamResponse(
                headers={**headers, "Content-Type": "text/event-stream; charset=utf-8"}
            )
            await response.prepare(request)
            try:
                await self._follow(request, response, access)
            except (ConnectionError, TimeoutError, NotAuthenticatedError):
                # Abort: a browser that does not read, or has disconnected, cannot receive an orderly end.
                if request.transport is not None:
                    request.transport.abort()
            return response

    async def _follow(self, request: web.Request, response: web.StreamResponse, access: ViewerAccess) -> None:
        before, version = NOTHING, 0
        while True:
            if self.feed.version > version:
                view = self.feed.view(access)
                event = self.feed.event(before, view)
                kind = b"change" if version else b"whole"
                before, version = view, self.feed.version
                if event:
                    await self._send(response, b"event: " + kind + b"\ndata: " + event + b"\n\n")
            else:
                await self._send(response, b": nothing new\n\n")
            await self.feed.newer(version, HEARTBEAT_SECONDS)
            access = await self._access(request)

    async def _send(self, response: web.StreamResponse, event: bytes) -> None:
        """Sends an event. Raises `TimeoutError` if the browser does not read it within `stalled_seconds`."""
        async with asyncio.timeout(self.stalled_seconds):
            await response.write(event)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """A context that counts an open stream. Raises `HTTPServiceUnavailable` if there are too many
        already.
        """
        if self.viewers >= self.limit:
            text = f"{self.limit} pages are open already: close one, and try again"
            raise web.HTTPServiceUnavailable(text=text)
        self.viewers += 1
        try:
            yield
        finally:
            self.viewers -= 1


def _text(status: int, text: str) -> web.Response:
    headers = {**HEADERS, "Cache-Control": "no-store"}
    return web.Response(status=status, text=text + "\n", headers=headers)


@dataclass(slots=True)
class Serving:
    """A running server of the page."""

    runner: web.AppRunner
    listener: Listener

    @property
    def port(self) -> int:
        """The port number on which the server listens."""
        return self.listener.port

    async def stop(self) -> None:
        """Stops listening, and closes all streams."""
        await self.listener.close()
        await self.runner.cleanup()


async def serve(page: Page, host: str, port: int, tls: ssl.SSLContext | None = None) -> Serving:
    """Starts to listen on `host:port` (port 0: any free one), over TLS if `tls` is given. Raises `OSError`
    if the address cannot be used.
    """
    runner = web.AppRunner(
        page.app(),
        access_log=None,
        shutdown_timeout=0.5,  # seconds; streams do not end by themselves
        keepalive_timeout=IDLE_SECONDS,
        handler_cancellation=True,
    )
    await runner.setup()
    assert runner.server is not None, "`setup` creates the server"
    listener = Listener(runner.server, page.connections, tls, MAX_CONNECTIONS)
    try:
        await listener.open(host, port)
    except OSError:
        await runner.cleanup()
        raise
    return Serving(runner, listener)
