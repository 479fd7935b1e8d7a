"""A TLS context for a running server that takes up a new certificate without a restart.

At each handshake the outer context hands over to the newest good one, made anew from the files whenever they
change. So a swap is one assignment: a bad pair never gets in, a client CA that went is trusted no more, and
connections that are open keep what they began with.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from pathlib import Path

AEAD_SUITES = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2; every suite of TLS 1.3 is AEAD."""
POLL_SECONDS = 10.0
"""The kubelet takes up to a minute to update a mounted Secret, so this adds little."""

_Signature = tuple[tuple[int, int, int, int] | None, ...]


class ReloadingContext:
    """`context` serves `certificate` and `key` as they are on disk; `client_ca` demands client certificates.

    `report` is told, in a sentence, of every reload and of every pair that was bad (once each). Raises
    `OSError` or `ssl.SSLError` where the first pair cannot be loaded.
    """

    def __init__(
        self,
        certificate: Path,
        key: Path,
        *,
        client_ca: Path | None = None,
        report: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        self._report = report
        self._signature = self._look()
        self._current = self._build()
        self.context = self._build()
        self.context.sni_callback = self._hand_over

    def reload_if_changed(self) -> bool:
        """Take up the files if they changed since the last look; True where new ones now serve.

        A pair that cannot be loaded is reported and the former one goes on serving.
        """
        signature = self._look()
        if signature == self._signature:
            return False
        try:
            fresh = self._build()
        except OSError as error:  # ssl.SSLError is one
            self._signature = signature
            self._report(f"{self._certificate}, {self._key}: not taken up, the former pair serves: {error}")
            return False
        if self._look() != signature:  # replaced while it was read: left for the next look
            return False
        self._signature, self._current = signature, fresh
        self._report(f"{self._certificate}: taken up")
        return True

    async def watch(self, interval: float = POLL_SECONDS) -> None:
        """Look at the files for ever, every `interval` seconds."""
        while True:
            await asyncio.sleep(interval)
            await asyncio.to_thread(self.reload_if_changed)

    def _hand_over(
        self, connection: ssl.SSLObject | ssl.SSLSocket, server_name: str | None, outer: ssl.SSLContext
    ) -> None:
        connection.context = self._current

    def _build(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(AEAD_SUITES)
        context.load_cert_chain(self._certificate, self._key)
        if self._client_ca is not None:
            context.load_verify_locations(cafile=self._client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _look(self) -> _Signature:
        paths = (self._certificate, self._key, self._client_ca)
        return tuple(_identity(path) for path in paths if path is not None)


def _identity(path: Path) -> tuple[int, int, int, int] | None:
    """What changes when the file does, through links; None where it cannot be seen."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
