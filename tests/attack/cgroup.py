"""A memory limit of the kernel's own, as the kubelet sets one: who passes it is killed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.attack.faults import Missing

MIB = 2**20
VERSIONS = (
    ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"),
    ("memory.max", "memory.peak", "memory.events"),
)
"""Of version 1 and 2: the files of the limit, of the most that was taken, and of kills."""


class MemoryLimit:
    """A cgroup for so many MiB; `run` gives the command that runs another one in it.

    It lies beside the cgroup of this process, whose limits above it count as well.
    """

    def __init__(self, mebibytes: float) -> None:
        """Raises `Missing` where none can be made."""
        self.folder = _beside() / f"bayplan-{time.monotonic_ns()}"
        try:
            self.folder.mkdir()
            self._limit, self._peak, self._events = next(
                files for files in VERSIONS if (self.folder / files[0]).exists()
            )
            (self.folder / self._limit).write_text(str(int(mebibytes * MIB)))
        except (OSError, StopIteration) as error:
            self.close()
            raise Missing(f"no memory cgroup can be made: {error or 'no memory controller'}") from None

    def command(self, command: Sequence[str]) -> list[str]:
        """The same command, run within the limit from its first page on."""
        script = f'echo $$ > {self.folder}/cgroup.procs && exec "$@"'
        return ["sh", "-c", script, "sh", *command]

    def peak(self) -> float:
        """The most that was taken, in MiB, what the kernel keeps for sockets and files among it."""
        with suppress(OSError):  # memory.peak is of Linux 5.19
            return int((self.folder / self._peak).read_text()) / MIB
        return float("nan")

    def kills(self) -> int:
        """How often it was passed, and a process killed."""
        rows = (line.split() for line in (self.folder / self._events).read_text().splitlines())
        return next(int(number) for name, number in rows if name == "oom_kill")

    def close(self) -> None:
        """After those in it have ended."""
        with suppress(OSError):
            self.folder.rmdir()


def _beside() -> Path:
    """The folder of the cgroup above this process's own that has memory to give."""
    rows = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    first = next((path for _, controllers, path in rows if "memory" in controllers.split(",")), None)
    if first is not None:
        root, own = Path("/sys/fs/cgroup/memory"), first
    else:
        root, own = Path("/sys/fs/cgroup"), next((path for number, _, path in rows if number == "0"), "/")
    folder = root / own.strip("/")
    return folder if folder == root else folder.parent
