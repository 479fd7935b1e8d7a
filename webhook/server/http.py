"""The webhook over HTTP: /mutate, /validate, /healthz, /readyz, /metrics. Decisions are made elsewhere."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from planner.cluster.snapshot import Snapshot
from planner.ledger.ledger import LedgerUnavailable
from planner.model.reservation import Book
from webhook.admission.decision_record import Decision, Phase
from webhook.server.connections import BytesInFlight, Connections
from webhook.server.decision_log import json_line, log_line
from webhook.server.disks import full_disks
from webhook.server.metrics import Metrics, metrics
from webhook.server.service import Service
from webhook.server.standing_metrics import Standing
from webhook.wire.request import AdmissionRequest
from webhook.wire.review import BODY_LIMIT, BadCall, decode, encode

DEADLINE = 4.0
"""The deadline of one call in seconds: below the `timeoutSeconds: 5` of the webhook configurations, so that
the API server receives the refusal with its message.
"""


BODY_SECONDS = 2.0
"""Seconds for the body of a call to arrive. The API server sends it at once."""


CLOSED = 499
"""The HTTP status that metric and log show if a caller hangs up, as in nginx. It is sent to nobody."""


log = logging.getLogger("bayplan")


def tell_nobody(phase: Phase, request: AdmissionRequest, decision: Decision) -> None:
    """Does nothing. The default observer: without a cluster, decisions are reported nowhere."""


def no_end() -> float:
    """Returns 0, which means that no certificate is served."""
    return 0.0


def no_problem() -> str:
    """Returns "", no problem: decisions are made in this process."""
    return ""


@dataclass(slots=True)
class Webhook:
    """The HTTP handlers.

    `stopping`: the server reports that it is not ready, and finishes the calls in flight. `begun`: the first
    snapshot of the cluster was complete, so calls are answered. `callers`: the names in client certificates
    that may call; if empty, everyone may (with a certificate of the client CA, if there is one).
    """

    service: Service
    deadline: float = DEADLINE
    metrics: Metrics = field(default_factory=metrics)
    stopping: bool = False
    begun: bool = False
    connections: Connections = field(default_factory=Connections)
    bodies: BytesInFlight = field(default_factory=BytesInFlight)
    callers: frozenset[str] = frozenset()
    observer: Callable[[Phase, AdmissionRequest, Decision], None] = tell_nobody
    """Called with each decision after it is answered. It runs on the event loop, so it must be fast and must
    not raise.
    """
    certificate_end: Callable[[], float] = no_end
    """Returns when the serving certificate expires, in seconds since the epoch; 0 if none is served."""
    folders: Mapping[str, Path] = field(default_factory=dict)
    """The folders into which the server writes, by a name of their content. /readyz warns if a disk is full.
    """
    workers_problem: Callable[[], str] = no_problem
    """Returns why fewer worker processes run than requested; "" if there are enough."""

    def app(self) -> web.Application:
        """Returns the aiohttp application with calls, probes and metrics."""
        app = self.calls()
        self._add_probes(app)
        return app

    def calls(self) -> web.Application:
        """Returns an application with only /mutate and /validate."""
        app = web.Application(client_max_size=BODY_LIMIT + 1, middlewares=[self._middleware()])
        app.router.add_post("/mutate", self._handler("mutate"))
        app.router.add_post("/validate", self._handler("validate"))
        return app

    def probes(self) -> web.Application:
        """Returns an application with only /healthz, /readyz and /metrics."""
        app = web.Application(middlewares=[self._middleware()])
        self._add_probes(app)
        return app

    def _add_probes(self, app: web.Application) -> None:
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)

    def _handler(self, phase: Phase) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(call: web.Request) -> web.Response:
            started = time.perf_counter()
            self._check_caller(call)
            self._check_begun()
            request: AdmissionRequest | None = None
            try:
                async with asyncio.timeout(self.deadline) as timeout, self.bodies.holding(_announced(call)):
                    body = await _body(call)
                    with self.connections.answering(call.protocol):
                        request = decode(body)
                        read = time.perf_counter()
                        decision = await self.service.answer(request, phase, timeout.when() or math.inf)
            except TimeoutError:
                if request is None:
                    raise
                decision = self.service.out_of_time(request, self.deadline)
            seconds, deciding = time.perf_counter() - started, time.perf_counter() - read
            self.metrics.observe(phase, decision, seconds, deciding)
            log.info(log_line(phase, request, decision, seconds))
            # After the answer is sent: the user does not wait for reports.
            asyncio.get_running_loop().call_soon(self.observer, phase, request, decision)
            body = encode(request.uid, decision.response, request.display_name)
            return web.Response(body=body, content_type="application/json")

        return handle

    def _check_caller(self, call: web.Request) -> None:
        """Raises `BadCall` 403 if no name in the caller's certificate is in `callers`.

        A valid signature alone is not enough: a CA of the cluster also signs other clients, such as kubelets.
        """
        if not self.callers:
            return
        names = names_in(call.get_extra_info("peercert") or {})
        if not self.callers.intersection(names):
            shown = ", ".join(sorted(names)) or "no name"
            raise BadCall(f"the client certificate ({shown}) may not call; --client-names has others", 403)

    def _check_begun(self) -> None:
        """Raises `BadCall` 503 before the first complete snapshot: nothing can be planned, and nothing is
        admitted without a plan. The `failurePolicy` of the webhook then decides.

        A Service routes no new connection to a replica that is not ready, but the API server may still have
        an open one.
        """
        if not self.begun:
            waiting = self.service.cluster.waiting()
            if waiting:
                raise BadCall(f"not ready: {waiting}", 503)
            self.begun = True

    def _middleware(self) -> Middleware:
        @web.middleware
        async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
            """Answers bad calls: a status and one line of text, never a traceback."""
            if request.method == "GET":
                with self.connections.answering(request.protocol):
                    answer = await guarded(request, handler)
            else:  # `_handler` marks the connection of a call as busy once the call's body is complete
                answer = await guarded(request, handler)
            if self.stopping:  # so that the caller opens a connection to another replica for its next call
                answer.force_close()
            return answer

        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await handler(request)
            except BadCall as error:
                return self._plain(error.status, str(error))
            except web.HTTPRequestEntityTooLarge:
                return self._plain(413, f"the body is larger than the limit of {BODY_LIMIT} bytes")
            except web.HTTPException as error:
                return self._plain(error.status, error.reason)
            except asyncio.CancelledError:
                self._plain(CLOSED, "the caller hung up before its answer")
                raise
            except TimeoutError:
                return self._plain(504, f"no decision within {self.deadline:g} s")
            except Exception as error:  # last resort: the caller gets a line, the log the traceback
                log.error(
                    json_line(event="error", path=request.path, error=type(error).__name__), exc_info=error
                )
                return self._plain(500, "an internal error; the server's log has it")

        return errors

    def _plain(self, status: int, text: str) -> web.Response:
        self.metrics.bad_calls.labels(str(status)).inc()
        log.warning(json_line(event="bad call", status=status, message=text))
        return web.Response(status=status, text=text + "\n")

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        """Answers 200 from the first complete snapshot on until the server stops, otherwise 503.

        The body is JSON: the revision of the policies, what is outdated or missing (`problems`), and the
        settings.
        """
        waiting = self.service.cluster.waiting()
        # In a thread: reading changed objects may take long, for example ten thousand keys.
        settings = (
            {"waiting": waiting} if waiting else {"settings": await asyncio.to_thread(self.service.in_force)}
        )
        others = [
            *await self._ledger_problem(),
            *full_disks(self.folders),
            *filter(None, [self.workers_problem()]),
        ]
        problems = [*self.problems(), *others]
        policies = self.service.policies.current
        detail = {
            "revision": policies.revision,
            "problems": problems,
            "warnings": policies.warnings,
            **settings,
        }
        status = 503 if self.stopping or waiting else 200
        return web.Response(status=status, body=orjson.dumps(detail) + b"\n", content_type="application/json")

    async def _metrics(self, _: web.Request) -> web.Response:
        policies = self.service.policies.current
        try:
            book: Book | None = await self.service.ledger.book(self.service.clock())
        except LedgerUnavailable:  # counters are shown anyway; gauges need the reservations
            book = None

        def text() -> bytes:
            settings = {} if self.service.cluster.waiting() else self.service.in_force()
            return self.metrics.exposition(policies, settings, not self.problems(), self._standing(book))

        return web.Response(body=await asyncio.to_thread(text), content_type="text/plain")

    def _standing(self, book: Book | None) -> Standing:
        waiting = None if self.service.cluster.waiting() else self.service.cluster.environment().waiting()
        snapshot = self._snapshot_with_book(book)
        return Standing(self.service.clock(), snapshot, waiting, self.certificate_end())

    def _snapshot_with_book(self, book: Book | None) -> Snapshot | None:
        snapshot = self.service.cluster.snapshot() if book is not None else None
        return snapshot.with_book(book) if snapshot is not None and book is not None else None

    async def _ledger_problem(self) -> list[str]:
        """Returns why nothing can be reserved now, in a list that is empty if the ledger is available.

        The server stays ready in spite of it, and reports it in the body of /readyz.
        """
        try:
            await self.service.ledger.book(self.service.clock())
        except LedgerUnavailable as error:
            return [str(error)]
        return []

    def problems(self) -> list[str]:
        """Returns why older data is in use: the newest policies, parameters or cluster files are invalid, or
        the watches are behind.
        """
        policies, cluster = self.service.policies.error, self.service.cluster.problem()
        problems = (str(policies) if policies else "", cluster, *self.service.parameters.problems)
        return [problem for problem in problems if problem]


def _announced(call: web.Request) -> int:
    """Returns the body's size in bytes according to the header `Content-Length`, `BODY_LIMIT` if there is
    none.

    Does not read the body. Raises `BadCall` 415 if it is not plain JSON, 413 if it is too large.
    """
    if call.content_type != "application/json":
        raise BadCall(f"expected content type application/json, found {call.content_type}", 415)
    encoding = call.headers.get("Content-Encoding", "identity")
    # The API server sends no other encoding, and a small compressed body may expand beyond any limit.
    if encoding != "identity":
        raise BadCall("expected a body without content encoding", 415)
    size = BODY_LIMIT if call.content_length is None else call.content_length
    if size > BODY_LIMIT:
        raise BadCall(f"the body has {size} bytes, more than the limit of {BODY_LIMIT}", 413)
    return size


async def _body(call: web.Request) -> bytes:
    """Returns the whole body. Raises `BadCall` 408 if it is late, 400 if it is incomplete."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await call.read()
    except TimeoutError:
        raise BadCall(f"the body was not whole within {BODY_SECONDS:g} s", 408) from None
    except (web.RequestPayloadError, ConnectionError):
        raise BadCall("the body ended before its end") from None


def names_in(certificate: Mapping[str, Any]) -> frozenset[str]:
    """Returns the common name and the DNS names of a certificate, as `ssl.SSLSocket.getpeercert` gives it."""
    subject = (pair for row in certificate.get("subject", ()) for pair in row)
    common = (value for key, value in subject if key == "commonName")
    return frozenset(
        (*common, *(value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"))
    )
