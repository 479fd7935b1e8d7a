"""Attacks on a real control plane with three replicas: a table with a bound for each line.

`make attack`, or `python -m tests.attack.run [REVIEWS [CHAOS SECONDS]]`. All of it is on loopback and ends by
itself. The exit status is 1 where a line does not hold. Times compare phases of one run that follow each
other and do the same work, so they say something on a busy machine too. The last lines have control planes of
their own: those of tests, and the one that chaos befalls.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.attack import chaos
from tests.attack.bombs import AFTER, BOMBS, LEFT, TIMEOUT, explode
from tests.attack.cgroup import MemoryLimit
from tests.attack.faults import Missing
from tests.attack.fuzzing import fuzz, patched
from tests.attack.noisy import CLIENTS, beside
from tests.attack.siege import siege
from tests.attack.table import HEAD, Line, p99
from tests.bench.cluster.run import control_plane
from tests.e2e.api import Api
from tests.e2e.processes import Process, start
from tests.e2e.replicas import Replicas

ROOT = Path(__file__).parents[2]
REVIEWS = 100_000
MEMORY = 400.0
"""MiB that the kernel gives the replica that is attacked, all together: its pages, its sockets, its files."""
SLOWER = 2.0
"""How many times its quiet p99 an honest caller's may be."""
FILES = {
    "forged callers": ("test_cluster_callers.py", "test_cluster_attacks_forged.py"),
    "hoarding": ("test_cluster_attacks_hoarding.py",),
    "queue jumping": ("test_cluster_attacks_priority.py",),
    "escapes": ("test_cluster_attacks_escapes.py", "test_cluster_skip.py"),
    "stolen token": ("test_cluster_attacks_token.py",),
}


@dataclass(slots=True)
class LimitedReplicas(Replicas):
    """Replicas of which the first, which is attacked most, has a memory limit, where one can be had."""

    limit: MemoryLimit | None = None

    def _start(self, number: int) -> Process:
        command = self.command(number)
        if self.limit is not None and number == 0:
            command = self.limit.command(command)
        return start(f"bayplan-{number}", command, self.folder)


def noisy_neighbour(api: Api, replicas: Replicas) -> Line:
    """One namespace asks for the worst objects without a pause; another one creates its small pods."""
    seen = beside(api, replicas)
    quiet, loud = p99(seen.quiet), p99(seen.loud)
    measured = (
        f"{1000 * quiet:.0f} ms quiet, {1000 * loud:.0f} ms beside it: {loud / quiet:.2f} ×; "
        f"{seen.failed.total()} of {len(seen.quiet) + len(seen.loud)} failed {dict(seen.failed) or ''}"
    )
    holds = loud < SLOWER * quiet and not seen.failed
    return Line(
        f"noisy neighbour, {CLIENTS} clients", f"p99 below {SLOWER:g} × quiet, none fails", measured, holds
    )


def bombs(replicas: Replicas) -> Line:
    """What is dear to decide, all at once."""
    holds, measured = explode(replicas.ports[0], replicas.processes[0])
    bound = f"each within {TIMEOUT:g} s, then below {LEFT:g} s of CPU in {AFTER:g} s"
    return Line(f"{len(BOMBS)} dear requests at once", bound, measured, holds)


def memory(limit: MemoryLimit | None, why: str, replicas: Replicas) -> Line:
    """Whether the first replica lived through all of it within its limit."""
    attack, bound = "all of these, in a memory cgroup", f"no kill within {MEMORY:g} MiB"
    if limit is None:
        return Line(attack, bound, why, False)
    alive = replicas.processes[0].popen.poll() is None
    measured = f"{limit.kills()} kills, at most {limit.peak():.0f} MiB with the kernel's own"
    return Line(attack, bound, measured, alive and not limit.kills())


def of_files(attack: str, names: Sequence[str]) -> Line:
    """The tests of some files, which attack a control plane of their own."""
    paths = [ROOT / "tests" / "e2e" / name for name in names]
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        return Line(attack, "its tests pass", f"not there: {', '.join(missing)}", False)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, paths)]
    environment = {**os.environ, "BAYPLAN_E2E": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    last = (done.stdout.strip().splitlines() or ["nothing was said"])[-1]
    return Line(attack, "its tests pass", last, done.returncode == 0)


def rounds(seconds: float) -> Line:
    """Rounds of chaos; each is told on standard error."""
    attack, bound = f"chaos, {seconds:g} s in rounds", "no double, no lost, no unused hold"
    try:
        played = chaos.run(seconds, chaos.SEED, lambda text: print(text, file=sys.stderr, flush=True))
    except Missing as error:
        return Line(attack, bound, str(error), False)
    broken = [str(entry.number) for entry in played if entry.broken]
    measured = f"{len(played)} rounds, {sum(len(entry.faults) for entry in played)} faults, seed {chaos.SEED}"
    return Line(attack, bound, f"{measured}, broken: {', '.join(broken) or 'none'}", not broken)


def on_one_plane(count: int) -> Iterator[Line]:
    """Those that share a control plane, as soon as they are measured."""
    limit, why = None, ""
    try:
        limit = MemoryLimit(MEMORY)
    except Missing as error:
        why = str(error)
    with tempfile.TemporaryDirectory() as name, control_plane(Path(name)) as (plane, kubectl):
        for namespace in ("team", "storm"):
            plane.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
            account = {"metadata": {"name": "default"}}
            plane.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
        replicas = LimitedReplicas(plane.api, kubectl.kubeconfig, Path(name), 3, limit=limit)
        try:
            replicas.start()
            yield bombs(replicas)
            yield from siege(replicas, MEMORY, SLOWER)
            replicas.configure()
            yield noisy_neighbour(plane.api, replicas)
            replicas.unconfigure()
            yield patched(plane.api, replicas.ports, count)
            yield fuzz(replicas.ports, count)
            yield memory(limit, why, replicas)
        finally:
            replicas.stop()
            if limit is not None:
                limit.close()


def lines(count: int, seconds: float) -> Iterator[Line]:
    """Every line."""
    yield from on_one_plane(count)
    for attack, names in FILES.items():
        yield of_files(attack, names)
    if seconds:
        yield rounds(seconds)


def main(count: int, seconds: float, report: Callable[[str], None] = print) -> int:
    """The table; 1 where a line does not hold."""
    held = True
    report(HEAD)
    for line in lines(count, seconds):
        report(str(line))
        held = held and line.holds
    return 0 if held else 1


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    numbers = [float(word) for word in sys.argv[1:]]
    sys.exit(main(int(numbers[0]) if numbers else REVIEWS, numbers[1] if numbers[1:] else chaos.SECONDS))
