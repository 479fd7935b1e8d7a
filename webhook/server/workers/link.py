"""Sends and receives whole messages over a socket between two processes of this program."""

from __future__ import annotations

import pickle
import select
import socket
import struct
from typing import Any

_SIZE = struct.Struct("<Q")

STALLED_SECONDS = 5.0
"""Seconds without progress in a message that has begun, after which the other process counts as stopped."""


class LinkLost(Exception):  # noqa: N818 - an outcome, not a fault
    """The other process has ended, or has stopped in the middle of a message."""


class WorkerLink:
    """One end of the connection. Messages are pickled, which is safe here: the other end is a fork of this
    process.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._poll = select.poll()
        self._poll.register(end, select.POLLIN)

    def fileno(self) -> int:
        """Returns the file descriptor of the socket."""
        return self._end.fileno()

    def send(self, message: Any) -> None:
        """Sends a message.

        Raises `LinkLost`, or the error of `pickle` for a value that cannot be pickled; then nothing was sent.
        """
        payload = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._end.settimeout(STALLED_SECONDS)
        try:
            self._end.sendall(_SIZE.pack(len(payload)) + payload)
        except OSError as error:
            raise LinkLost(str(error)) from None

    def has_message(self, seconds: float) -> bool:
        """Reports whether a message begins to arrive, or the other process ends, within this many seconds."""
        return bool(self._poll.poll(1000 * seconds))

    def receive(self) -> Any:
        """Waits for the next message without a limit, and returns it. Raises `LinkLost`."""
        self._end.settimeout(None)
        first = self._read(1)
        self._end.settimeout(STALLED_SECONDS)
        (size,) = _SIZE.unpack(first + self._read(_SIZE.size - 1))
        return pickle.loads(self._read(size))

    def close(self) -> None:
        """Closes this end. The other process gets `LinkLost` when it reads."""
        self._end.close()

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self._end.recv(min(size - len(parts), 2**20))
            except OSError as error:
                raise LinkLost(str(error)) from None
            if not part:
                raise LinkLost("the other process has ended")
            parts += part
        return bytes(parts)
