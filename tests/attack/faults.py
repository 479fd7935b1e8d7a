"""What goes wrong in a round of chaos: each fault is done, lasts a while, and is mended again, by its seed.

Three lanes run side by side, each one fault after the other: what befalls the replicas, what befalls etcd and
the API server, and what befalls connections, clocks and disks.
"""

from __future__ import annotations

import random
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.api import Api, ApiError
from tests.e2e.controlplane import ControlPlane
from tests.e2e.processes import Process, start
from tests.e2e.replicas import LEASES, Balancer, Replicas

LEASE = f"{LEASES.format('default')}/bayplan-controller"
SOURCE = Path(__file__).with_name("clock.c")
PAUSE = (0.5, 3.0)
"""Seconds between two faults of a lane."""
JUMPS = (-43_200, -3_600, -60, 0, 60, 3_600, 43_200)
"""Seconds that a replica's clock is set away from the true time: within the certificates' validity."""


class Missing(Exception):
    """A fault cannot be made on this machine; the message says what it needs."""


@dataclass(slots=True)
class Disk:
    """A small disk in memory, mounted on a folder, that can be filled and freed. Needs the right to mount."""

    folder: Path
    mebibytes: int

    def mount(self) -> None:
        """Raises `Missing`."""
        self.folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={self.mebibytes}m", "tmpfs", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Missing(f"a disk of its own needs the right to mount: {done.stderr.strip()}")

    def unmount(self) -> None:
        """What still has files open there keeps them until it ends."""
        subprocess.run(["umount", "--lazy", str(self.folder)], check=False)

    def fill(self) -> None:
        """Not a byte is free."""
        with (self.folder / "ballast").open("wb", buffering=0) as ballast:
            for size in (2**20, 1):
                with suppress(OSError):
                    while True:
                        ballast.write(b"x" * size)

    def free(self) -> None:
        """As before."""
        (self.folder / "ballast").unlink(missing_ok=True)


@dataclass(slots=True)
class Clocks:
    """The wall clock of each replica, which can be set while it runs. Needs a C compiler."""

    folder: Path
    library: Path = field(init=False)

    def __post_init__(self) -> None:
        """Raises `Missing`."""
        self.library = self.folder / "clock.so"
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(self.library), str(SOURCE), "-ldl"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Missing(f"to set a program's clock needs a C compiler: {error}") from None

    def environment(self, number: int) -> dict[str, str]:
        """What a replica of this number runs with."""
        path = self._offset(number)
        if not path.exists():
            path.write_bytes(struct.pack("q", 0))
        return {"LD_PRELOAD": str(self.library), "CLOCK_OFFSET": str(path)}

    def set(self, number: int, seconds: int) -> None:
        """So far from the true time, at once."""
        with self._offset(number).open("r+b") as file:
            file.write(struct.pack("q", seconds))

    def _offset(self, number: int) -> Path:
        return self.folder / f"clock-{number}"


@dataclass(slots=True)
class ClockedReplicas(Replicas):
    """Replicas with clocks of their own, which keep a journal each."""

    clocks: Clocks | None = None

    def _start(self, number: int) -> Process:
        assert self.clocks is not None, "they are made with clocks"
        command = [*self.command(number), "--journal", f"journal-{number}", "--journal-size", "64"]
        return start(f"bayplan-{number}", command, self.folder, self.clocks.environment(number))


@dataclass(slots=True)
class World:
    """All that can go wrong: the control plane, replicas behind a wire to it, and their clocks and disks."""

    plane: ControlPlane
    wire: Balancer
    replicas: ClockedReplicas
    clocks: Clocks
    disks: Mapping[str, Disk]

    def heal(self) -> None:
        """All goes on, with room on its disk; what has ended runs again."""
        for disk in self.disks.values():
            disk.free()
        for name in ("etcd", "kube-apiserver"):
            _send(self.plane.running(name), signal.SIGCONT)
        self.plane.revive()
        for number, process in enumerate(self.replicas.processes):
            _send(process, signal.SIGCONT)
            if process.popen.poll() is not None:
                self.replicas.restart(number)

    def leader(self, chance: random.Random) -> int:
        """The replica that leads, any where nobody can say."""
        with suppress(ApiError, OSError):
            holder = Api(self.plane.kubeconfig).get(LEASE)["spec"].get("holderIdentity") or ""
            for number, process in enumerate(self.replicas.processes):
                if f"_{process.popen.pid}_" in holder:
                    return number
        return chance.randrange(self.replicas.count)


Fault = Callable[[World, random.Random], None]


def _send(process: Process, sign: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.popen.send_signal(sign)


@contextmanager
def _stopped(process: Process) -> Iterator[None]:
    """SIGSTOP: it answers nobody, keeps its connections, and knows nothing of the time that passes."""
    _send(process, signal.SIGSTOP)
    try:
        yield
    finally:
        _send(process, signal.SIGCONT)


def kill_replica(world: World, chance: random.Random) -> None:
    """SIGKILL of any."""
    _kill(world, chance.randrange(world.replicas.count), chance)


def kill_leader(world: World, chance: random.Random) -> None:
    """SIGKILL of the one that leads."""
    _kill(world, world.leader(chance), chance)


def _kill(world: World, number: int, chance: random.Random) -> None:
    world.replicas.kill(number)
    time.sleep(chance.uniform(0, 2))
    world.replicas.restart(number)
    port, over = world.replicas.ports[number], time.monotonic() + chance.uniform(3, 20)
    while time.monotonic() < over and not world.replicas.is_ready(port):
        time.sleep(0.2)


def stop_replica(world: World, chance: random.Random) -> None:
    """SIGSTOP of any, for less than a hold lives and for more."""
    with _stopped(world.replicas.processes[chance.randrange(world.replicas.count)]):
        time.sleep(chance.uniform(1, 15))


def stop_leader(world: World, chance: random.Random) -> None:
    """SIGSTOP of the one that leads, until another does: it goes on as if it still led."""
    with _stopped(world.replicas.processes[world.leader(chance)]):
        time.sleep(chance.uniform(8, 20))


def stop_etcd(world: World, chance: random.Random) -> None:
    """Nothing is stored, and nobody is told so."""
    with _stopped(world.plane.running("etcd")):
        time.sleep(chance.uniform(1, 8))


def kill_etcd(world: World, chance: random.Random) -> None:
    """SIGKILL, and back with what it had."""
    world.plane.running("etcd").stop(signal.SIGKILL)
    time.sleep(chance.uniform(0, 5))
    world.plane.start_etcd()


def stop_server(world: World, chance: random.Random) -> None:
    """The API server keeps its connections and says nothing."""
    with _stopped(world.plane.running("kube-apiserver")):
        time.sleep(chance.uniform(1, 10))


def kill_server(world: World, chance: random.Random) -> None:
    """SIGKILL of the API server."""
    world.plane.running("kube-apiserver").stop(signal.SIGKILL)
    time.sleep(chance.uniform(0, 15))
    world.plane.start_apiserver()


def cut_watches(world: World, chance: random.Random) -> None:
    """All connections of the replicas to the API server are lost, several times."""
    for _ in range(chance.randint(1, 5)):
        world.wire.cut()
        time.sleep(chance.uniform(0.2, 2))


def set_clock(world: World, chance: random.Random) -> None:
    """A replica's clock jumps, and stays there until it jumps again."""
    world.clocks.set(chance.randrange(world.replicas.count), chance.choice(JUMPS))
    time.sleep(chance.uniform(1, 5))


def fill_replicas_disk(world: World, chance: random.Random) -> None:
    """Logs and journals of all replicas find no room."""
    _fill(world.disks["replicas"], chance)


def fill_etcds_disk(world: World, chance: random.Random) -> None:
    """etcd finds no room, and ends where it must write."""
    _fill(world.disks["etcd"], chance)
    etcd = world.plane.running("etcd")
    with suppress(subprocess.TimeoutExpired):
        etcd.popen.wait(1)
    if etcd.popen.poll() is not None:
        world.plane.start_etcd()


def _fill(disk: Disk, chance: random.Random) -> None:
    disk.fill()
    try:
        time.sleep(chance.uniform(2, 8))
    finally:
        disk.free()


LANES: tuple[tuple[Fault, ...], ...] = (
    (kill_replica, kill_leader, stop_replica, stop_leader),
    (stop_etcd, kill_etcd, stop_server, kill_server, fill_etcds_disk),
    (cut_watches, set_clock, fill_replicas_disk),
)
"""Those of one lane touch the same things, so they never run side by side; etcd's disk is in etcd's."""


def run_lane(
    world: World, faults: tuple[Fault, ...], chance: random.Random, over: threading.Event, done: list[str]
) -> None:
    """One fault after the other until it is over; their names go to `done`."""
    while not over.wait(chance.uniform(*PAUSE)):
        fault = chance.choice(faults)
        done.append(fault.__name__)
        fault(world, chance)
