"""Opens and closes the ports of a webhook: calls over TLS; probes and metrics on the same port or a separate
one.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from prometheus_client import Counter

from webhook.server.connections import IDLE_SECONDS, Connections, Listener
from webhook.server.decision_log import json_line
from webhook.server.http import Webhook

READ_BUFFER = 16 * 1024
"""Bytes of a call that are buffered before the handler reads them, per connection; aiohttp buffers up to
twice as many.
"""


STOP_SECONDS = 10.0
"""Seconds that calls in flight have to finish when the server stops."""


class _HttpLog(logging.Logger):
    """The log of a server's aiohttp part. Bytes that are no HTTP count as a bad call and leave its line, and
    not aiohttp's traceback with these bytes: they may be a part of a body.
    """

    def __init__(self, bad_calls: Counter) -> None:
        super().__init__("bayplan.http")
        self.parent = logging.getLogger("bayplan")
        self._bad_calls = bad_calls

    def debug(self, msg: object, *args: Any, exc_info: Any = None, **others: Any) -> None:
        """Logs at level DEBUG, as aiohttp does if the first bytes of a connection are no HTTP."""
        if not self._is_bad_call(exc_info):
            super().debug(msg, *args, exc_info=exc_info, **others)

    def exception(self, msg: object, *args: Any, exc_info: Any = True, **others: Any) -> None:
        """Logs an error with its traceback, as aiohttp does for all other errors."""
        if not self._is_bad_call(exc_info):
            super().exception(msg, *args, exc_info=exc_info, **others)

    def _is_bad_call(self, error: object) -> bool:
        if not isinstance(error, HttpProcessingError):
            return False
        self._bad_calls.labels(str(error.code)).inc()
        reason = error.message.strip().partition(":")[0]
        self.warning(json_line(event="bad call", status=error.code, message=f"no HTTP: {reason}"))
        return True


@dataclass(slots=True)
class Running:
    """A server that listens. `calls`, `probes`: the application and the listener of a port; `probes` is None
    unless probes and metrics have a separate port.
    """

    webhook: Webhook
    calls: tuple[web.AppRunner, Listener]
    probes: tuple[web.AppRunner, Listener] | None = None

    @property
    def port(self) -> int:
        """The port number for calls."""
        return self.calls[1].port

    @property
    def probe_port(self) -> int:
        """The port number for probes and metrics."""
        return (self.probes or self.calls)[1].port

    async def drain(self, seconds: float) -> None:
        """Makes /readyz fail, and serves for `seconds` more, until all callers use other replicas.

        Each connection is closed after its next answer, so that `stop` interrupts none.
        """
        self.webhook.stopping = True
        await asyncio.sleep(seconds)

    async def stop(self) -> None:
        """Makes /readyz fail, stops listening, and finishes the calls in flight within `STOP_SECONDS`."""
        self.webhook.stopping = True
        for runner, listener in filter(None, (self.calls, self.probes)):
            await listener.close()
            await runner.cleanup()


async def start(
    webhook: Webhook, host: str, port: int, tls: ssl.SSLContext | None, probe_port: int | None = None
) -> Running:
    """Listens on `host:port` (port 0: any free one), over TLS if `tls` is given.

    With `probe_port`, probes and metrics are served only there, in plain HTTP, because the kubelet and
    Prometheus have no client certificate. Raises `OSError` if an address is not available.
    """
    log = _HttpLog(webhook.metrics.bad_calls)
    if probe_port is None:
        return Running(webhook, await _listen(webhook.app(), webhook.connections, log, host, port, tls))
    calls = await _listen(webhook.calls(), webhook.connections, log, host, port, tls)
    try:
        probes = await _listen(webhook.probes(), Connections(), log, host, probe_port, None)
        return Running(webhook, calls, probes)
    except OSError:
        await Running(webhook, calls).stop()
        raise


async def _listen(
    app: web.Application,
    connections: Connections,
    log: logging.Logger,
    host: str,
    port: int,
    tls: ssl.SSLContext | None,
) -> tuple[web.AppRunner, Listener]:
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=log,
        shutdown_timeout=STOP_SECONDS,
        keepalive_timeout=IDLE_SECONDS,
        auto_decompress=False,
        read_bufsize=READ_BUFFER,
        # If a caller hangs up, its call ends, and a reservation that it made first is released.
        handler_cancellation=True,
    )
    await runner.setup()
    assert runner.server is not None, "the runner is set up"
    listener = Listener(runner.server, connections, tls)
    try:
        await listener.open(host, port)
    except OSError:
        await runner.cleanup()
        raise
    return runner, listener
