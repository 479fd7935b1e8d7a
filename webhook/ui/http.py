"""The live page over HTTP: its files, one stream of events for each viewer, and what a gang's place is worth.

Nothing can be changed over it. Every answer forbids the browser to run or fetch anything that is not the
page's own. The stream is Server-Sent Events, read by `fetch`, which can send a token where EventSource
cannot.
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
"""All that there is to fetch. The style of the HTML report is the base of the page's."""

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

MAX_VIEWERS = 64
"""Streams at once: each holds at most one event of some megabytes that its browser has not read yet."""

MAX_CONNECTIONS = 256
"""Connections at once: browsers open up to six each."""

STALLED_SECONDS = 20.0
"""How long a browser may take to read an event; then it is dropped. The largest, all of 10,000 nodes, is a
few megabytes."""

HEARTBEAT_SECONDS = 15.0
"""A comment after so much silence: proxies close what is silent, and a browser that is gone is noticed."""

WORTHS_AT_ONCE = 2
"""Worths that are worked out at once; each is a search over all nodes."""

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
    """The handlers. `limit`: streams at once; `stalled_seconds`: for a browser to read an event."""

    feed: Feed
    gate: Gate
    limit: int = MAX_VIEWERS
    stalled_seconds: float = STALLED_SECONDS
    connections: Connections = field(default_factory=Connections)
    viewers: int = 0
    _worths: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WORTHS_AT_ONCE))

    def app(self) -> web.Application:
        """The aiohttp application."""
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
        """The road of bad calls: a status and a line, never a traceback."""
        with self.connections.answering(request.protocol):
            try:
                return await handler(request)
            except NotAuthenticatedError as error:
                return _text(error.status, str(error))
            except web.HTTPException as error:
                return _text(error.status, error.text or error.reason)
            except Exception as error:  # the last station: the viewer gets a line, the log the rest
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
        """What the viewer may see. Raises `NotAuthenticatedError`."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return await self.gate.access(token if scheme.lower() == "bearer" else "", self.feed.namespaces)

    async def _worth(self, request: web.Request) -> web.Response:
        """What the place of one gang is worth. To who may not see it there is no such gang."""
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
        """All, then what differs each time, until the browser goes, falls behind, or may see no more."""
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
                # Neither an event nor an orderly end goes through to who does not read, or has gone.
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
        """Raises `TimeoutError` where the browser does not read."""
        async with asyncio.timeout(self.stalled_seconds):
            await response.write(event)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """One of the streams. Raises `HTTPServiceUnavailable` where there are as many as may be."""
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
    """A page that is served at `port`."""

    runner: web.AppRunner
    listener: Listener

    @property
    def port(self) -> int:
        """That was given, or was free."""
        return self.listener.port

    async def stop(self) -> None:
        """Stop listening, and end the streams."""
        await self.listener.close()
        await self.runner.cleanup()


async def serve(page: Page, host: str, port: int, tls: ssl.SSLContext | None = None) -> Serving:
    """Listen on `host:port` (0 picks a free port). Raises `OSError` where the address cannot be had."""
    runner = web.AppRunner(
        page.app(),
        access_log=None,
        shutdown_timeout=0.5,  # streams never end by themselves
        keepalive_timeout=IDLE_SECONDS,
        handler_cancellation=True,
    )
    await runner.setup()
    assert runner.server is not None, "the runner is set up"
    listener = Listener(runner.server, page.connections, tls, MAX_CONNECTIONS)
    try:
        await listener.open(host, port)
    except OSError:
        await runner.cleanup()
        raise
    return Serving(runner, listener)
