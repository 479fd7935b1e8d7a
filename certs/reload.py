"""A TLS context for a running server that loads a new certificate without a restart.

The server gets one context. In each handshake, this context hands the connection over to an inner context,
which is replaced when the files change. A reload is therefore a single assignment: an invalid pair is never
used, a removed client CA is not trusted in new connections, and open connections keep their context.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from pathlib import Path

from cryptography import x509

AEAD_SUITES = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Cipher suites for TLS 1.2. All suites of TLS 1.3 are AEAD."""
POLL_SECONDS = 10.0
"""Seconds between checks of the files: short compared with the minute that the kubelet may take to update a
mounted Secret.
"""

_Signature = tuple[tuple[int, int, int, int] | None, ...]


class ReloadingContext:
    """`context` is the server's TLS context; it uses the current files `certificate` and `key`.

    With `client_ca`, clients must have a certificate of this CA. `report` is called with a sentence for every
    reload, and once for every invalid pair. Raises `OSError` or `ssl.SSLError` if the first pair cannot be
    loaded.
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
        self._end = self._read_end()
        self.context = self._build()
        self.context.sni_callback = self._hand_over

    def reload_if_changed(self) -> bool:
        """Reloads the files if they changed since the last check; returns whether new ones are in use.

        A pair that cannot be loaded is reported, and the previous one stays in use.
        """
        signature = self._look()
        if signature == self._signature:
            return False
        try:
            fresh, end = self._build(), self._read_end()
        except (OSError, ValueError) as error:  # includes ssl.SSLError
            self._signature = signature
            self._report(f"{self._certificate}, {self._key}: not taken up, the former pair serves: {error}")
            return False
        if self._look() != signature:  # replaced while it was read: the next check loads it
            return False
        self._signature, self._current, self._end = signature, fresh, end
        self._report(f"{self._certificate}: taken up")
        return True

    def ends(self) -> float:
        """Returns when the current certificate expires, in seconds since the epoch."""
        return self._end

    async def watch(self, interval: float = POLL_SECONDS) -> None:
        """Checks the files every `interval` seconds, until cancelled."""
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

    def _read_end(self) -> float:
        leaf = x509.load_pem_x509_certificates(self._certificate.read_bytes())[0]
        return leaf.not_valid_after_utc.timestamp()

    def _look(self) -> _Signature:
        paths = (self._certificate, self._key, self._client_ca)
        return tuple(_identity(path) for path in paths if path is not None)


def _identity(path: Path) -> tuple[int, int, int, int] | None:
    """Returns device, inode, modification time and size of a file, with symbolic links resolved.

    None if the file cannot be read. A different value means that the file has changed.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
