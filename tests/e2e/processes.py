"""Programs that a test starts, watches and stops, each by its own process id."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

STOP_SECONDS = 15.0
PORTS = (12_000, 32_000)


@dataclass(slots=True)
class Process:
    """A running program and the file with its output."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    def tail(self, size: int = 3000) -> str:
        """The end of the program's output."""
        return self.log.read_text(errors="replace")[-size:]

    def stop(self, sign: signal.Signals = signal.SIGTERM) -> int:
        """Terminates the program, kills it if it does not end, and returns its exit status."""
        if self.popen.poll() is None:
            self.popen.send_signal(sign)
            try:
                self.popen.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        return self.popen.wait()

    def wait_until(self, ready: Callable[[], bool], seconds: float = 60.0) -> None:
        """Waits until the program is ready. Raises `RuntimeError` with its log if it ends or takes too
        long.
        """
        try:
            wait_until(lambda: self.popen.poll() is not None or ready(), f"{self.name} to be ready", seconds)
        except TimeoutError:
            raise RuntimeError(f"{self.name} is not ready after {seconds:g} s:\n{self.tail()}") from None
        if self.popen.poll() is not None:
            raise RuntimeError(f"{self.name} ended with status {self.popen.returncode}:\n{self.tail()}")


def start(
    name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Process:
    """Starts a program; its output goes to NAME.log in the folder."""
    log = folder / f"{name}.log"
    with log.open("ab") as output:
        popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **(environment or {})},
        )
    return Process(name, popen, log)


def free_port() -> int:
    """A TCP port on loopback that is free now. It is below the range that the kernel uses for outgoing
    connections, so no such connection takes it before the program listens.
    """
    while True:
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", random.randrange(*PORTS)))
            return int(listener.getsockname()[1])


def wait_until(true: Callable[[], bool], awaited: str, seconds: float = 30.0, pause: float = 0.1) -> None:
    """Calls the condition until it holds. Raises `TimeoutError` with the text of what was waited for."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:g} s for {awaited}")
        time.sleep(pause)
