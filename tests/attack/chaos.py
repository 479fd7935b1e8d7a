"""Rounds of chaos on a real control plane with three replicas: what must be true after each of them.

`python -m tests.attack.chaos [SECONDS [SEED]]`, or a line of `make attack`. In a round impatient users apply
gangs and end a third of them while faults come (`faults`), drawn by the seed and the number of the round.
Then all is mended, and the round is sound where, in the end,

- no rack has two holders, and no node more pods than GPUs (no double);
- each object that a user was told is stored is there, and each gang that was let in has its place (no lost);
- each place has a gang whose pods are bound to it, and no rack is free while gangs wait (no unused hold);
- once all are deleted, nothing is held.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import orjson

from tests.attack.faults import LANES, ClockedReplicas, Clocks, Disk, World, run_lane
from tests.e2e import storm
from tests.e2e.api import Api, ApiError
from tests.e2e.binaries import find
from tests.e2e.conftest import policy_set
from tests.e2e.controlplane import ControlPlane
from tests.e2e.fleet import Fleet, namespace
from tests.e2e.kube_ledgers import install
from tests.e2e.kubectl import Kubectl
from tests.e2e.kubelet import Kubelet
from tests.e2e.processes import wait_until
from tests.e2e.real_kinds import SHARED, define
from tests.e2e.replicas import RESERVATIONS, Balancer, nodes, reservations

Json = dict[str, Any]
SECONDS, SEED = 3600.0, 14
RACKS, GANGS = 12, 36
FAULTY_SECONDS, MOST_FAULTY_SECONDS = 25.0, 90.0
"""How long faults come in each round: until the users are done, but no longer than that. A replica needs some
time without any to start."""
SETTLE_SECONDS = 240.0
"""How long all may take to be in order after the last fault, on a machine that does other work."""
ENDED_AFTER = 3
"""Each gang of so many is ended by its user while faults come."""


@dataclass(slots=True)
class Round:
    """What came of one round."""

    number: int
    faults: list[str] = field(default_factory=list)
    course: str = ""
    broken: str = ""

    def __str__(self) -> str:
        verdict = f"BROKEN: {self.broken}" if self.broken else "sound"
        return f"round {self.number}: {len(self.faults)} faults; {self.course}; {verdict}"


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """A control plane of its own, whose parts may end, and three replicas that reach it through a wire.

    Raises `Missing` where a disk or a clock of their own cannot be had.
    """
    programs = find()
    disks = {"etcd": Disk(folder / "store", 1024), "replicas": Disk(folder / "logs", 512)}
    plane = ControlPlane(programs, folder)
    clocks = Clocks(folder)
    replicas: ClockedReplicas | None = None
    try:
        for disk in disks.values():
            disk.mount()
        (folder / "etcd").symlink_to(disks["etcd"].folder, target_is_directory=True)
        plane.start()
        wire = Balancer([plane.port])
        kubeconfig = folder / "wired.kubeconfig"
        kubeconfig.write_text(plane.kubeconfig.read_text().replace(f":{plane.port}", f":{wire.port}"))
        policies = policy_set("default-scheduler", folder)
        _furnish(plane)
        replicas = ClockedReplicas(
            plane.api, kubeconfig, disks["replicas"].folder, 3, policies, clocks=clocks
        )
        with Kubelet(plane.api):
            replicas.start()
            replicas.configure()
            yield World(plane, wire, replicas, clocks, disks)
    finally:
        if replicas is not None:
            replicas.stop()
        plane.stop()
        for disk in disks.values():
            disk.unmount()


def _furnish(plane: ControlPlane) -> None:
    kubectl = Kubectl(plane.programs["kubectl"], plane.kubeconfig)
    define(kubectl, *SHARED)
    install(kubectl)
    namespace(plane.api, "research")
    Fleet(plane.api).make(nodes(RACKS, storm.HOSTS))


def play(world: World, seed: int, number: int) -> Round:
    """One round."""
    played = Round(number)
    over, failed = threading.Event(), list[str]()

    def run(lane: int) -> None:
        try:
            run_lane(world, LANES[lane], random.Random(f"{seed}-{number}-{lane}"), over, played.faults)
        except Exception:
            failed.append(traceback.format_exc())

    watcher = threading.Thread(target=_watch, args=(world.plane, over, failed))
    lanes = [watcher, *(threading.Thread(target=run, args=(lane,)) for lane in range(len(LANES)))]
    began = time.monotonic()

    def mend() -> None:
        over.wait(MOST_FAULTY_SECONDS)
        over.set()
        for thread in lanes:
            thread.join()
        world.heal()

    mending = threading.Thread(target=mend)
    for thread in (*lanes, mending):
        thread.start()
    try:
        outcomes = storm.apply_all(world.plane.api, f"c{number}", GANGS)
        gone = _end_some(world.plane.api, number)
        over.wait(max(0.0, FAULTY_SECONDS - (time.monotonic() - began)))
    finally:
        over.set()
        mending.join()
    healed = time.monotonic()
    stored = {f"c{number}-{gang}" for gang in range(GANGS)} - gone
    played.course = (
        f"{dict(outcomes.outcomes)} in {outcomes.seconds:.0f} s, {outcomes.retries} calls made again"
    )
    played.broken = "; ".join(failed) or _unsound(world, outcomes, stored)
    if not played.broken:
        settled = time.monotonic() - healed
        freed = storm.end_all(world.plane.api, SETTLE_SECONDS)
        played.course += f", in order after {settled:.0f} s, all free {freed:.0f} s after the end"
    return played


def _unsound(world: World, outcomes: storm.Tally, stored: set[str]) -> str:
    """What is not as it must be, in words; "" where all is."""
    api = world.plane.api
    if not set(outcomes.outcomes) <= {"admitted", "queued"}:
        return f"gangs were neither admitted nor queued: {dict(outcomes.outcomes)}"
    last = "nothing could be read"

    def in_order() -> bool:
        nonlocal last
        with suppress(ApiError, OSError):
            last = _disorder(api, stored)
        return not last

    try:
        wait_until(in_order, "all to be in order", SETTLE_SECONDS, 1.0)
        storm.is_sound(api)
    except TimeoutError:
        return last
    except AssertionError as error:
        return f"double: {error}"
    return ""


def _disorder(api: Api, stored: set[str]) -> str:
    """What is not in order now."""
    jobs = {item["metadata"]["name"] for item in api.items(storm.JOBS)}
    if jobs != stored:
        return f"lost {sorted(stored - jobs)}, not ended {sorted(jobs - stored)}"
    held = {gang.rpartition("/")[2]: item for gang, item in reservations(api).items()}
    if strangers := sorted(set(held) - stored):
        return f"unused holds, of nobody's: {strangers}"
    if not storm.every_admitted_gang_has_its_place(api):
        return "lost: an admitted gang has no place"
    taken = {node.partition("-")[0] for item in held.values() for node in storm.touched(item)}
    if len(taken) < RACKS and len(held) < len(stored):
        return f"{RACKS - len(taken)} racks are free while {len(stored) - len(held)} gangs wait"
    for name, item in sorted(held.items()):
        placed = sorted(
            node for part in item["spec"]["assignments"] for node in [part["node"]] * part["count"]
        )
        pods = api.items(storm.PODS, labelSelector=f"job-name={name}")
        bound = sorted(
            pod["spec"].get("nodeName", "") for pod in pods if "deletionTimestamp" not in pod["metadata"]
        )
        if bound != placed:
            return f"unused hold: {name} holds {placed}, its pods are on {bound}"
    return ""


def _end_some(api: Api, number: int) -> set[str]:
    """A third of the gangs is deleted by their users, who try until they are told that it is done."""
    names = {f"c{number}-{gang}" for gang in range(0, GANGS, ENDED_AFTER)}
    for name in sorted(names):
        for _ in range(200):
            try:
                api.delete(f"{storm.JOBS}/{name}")
                break
            except (ApiError, OSError):
                time.sleep(0.5)
    return names


def _watch(plane: ControlPlane, over: threading.Event, failed: list[str]) -> None:
    """Meanwhile, too, no two claimed places touch. What is only proposed may still be withdrawn."""
    api = Api(plane.kubeconfig)
    while not over.wait(1.0):
        with suppress(ApiError, OSError):
            claimed = [item for item in reservations(api).values() if item["status"]["state"] == "claimed"]
            for first, second in combinations(claimed, 2):
                if common := storm.touched(first) & storm.touched(second):
                    pair = (first["spec"]["gang"], second["spec"]["gang"])
                    failed.append(f"double: {pair} on {sorted(common)}")


def run(seconds: float, seed: int, report: Callable[[str], None]) -> list[Round]:
    """Rounds until the time is over; each is told. What is known of a broken one is kept, and the rest goes
    on in a new world."""
    rounds: list[Round] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, world(Path(name)) as battered:
            while time.monotonic() < end:
                played = play(battered, seed, len(rounds))
                rounds.append(played)
                report(str(played))
                if played.broken:
                    report(f"kept in {_keep(battered, seed, played)}")
                    break
    return rounds


def _keep(world: World, seed: int, played: Round) -> Path:
    """Logs, and what is in the cluster."""
    folder = Path(tempfile.gettempdir()) / f"bayplan-chaos-{seed}-{played.number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for log in (*world.disks["replicas"].folder.glob("*.log"), *world.plane.folder.glob("*.log")):
        shutil.copy(log, folder)
    (folder / "faults").write_text("\n".join(played.faults) + f"\n{played}\n")
    for kind, path in (
        ("jobs", storm.JOBS), ("pods", storm.PODS), ("reservations", RESERVATIONS)
    ):  # fmt: skip
        with suppress(ApiError, OSError):
            (folder / f"{kind}.json").write_bytes(orjson.dumps(world.plane.api.items(path)))
    return folder


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    arguments = [float(word) for word in sys.argv[1:]]
    every = run(arguments[0] if arguments else SECONDS, int(arguments[1]) if arguments[1:] else SEED, print)
    broken = [played for played in every if played.broken]
    print(f"{len(every)} rounds, {sum(len(p.faults) for p in every)} faults, {len(broken)} broken")
    sys.exit(1 if broken else 0)
