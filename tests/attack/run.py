"""Attacks on a real control plane with three replicas: a table with a bound for each line.

`make attack`, or `python -m tests.attack.run [PART…]`. All of it is on loopback and ends by itself. The exit
status is 1 where a line does not hold. Times compare phases of one run that follow each other and do the same
work, so they say something on a busy machine too. The last lines have control planes of their own: those of
tests, and the one that chaos befalls.

A part is one or several lines: `python -m tests.attack.run fuzz --reviews 20000 --first 40000` sends the
third fifth of the fuzzed reviews alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
    "callers": ("test_cluster_callers.py", "test_cluster_attacks_forged.py"),
    "hoarding": ("test_cluster_attacks_hoarding.py",),
    "priority": ("test_cluster_attacks_priority.py",),
    "escapes": ("test_cluster_attacks_escapes.py", "test_cluster_skip.py"),
    "token": ("test_cluster_attacks_token.py",),
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
    replicas.configure()
    try:
        seen = beside(api, replicas)
    finally:
        replicas.unconfigure()
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


def logs(output: str) -> Line:
    """Whether a replica met an error that it had no words for."""
    _, *after = output.split("Traceback (most recent call last):\n")
    ends = [next((line for line in text.splitlines() if not line.startswith(" ")), "") for text in after]
    measured = f"{len(ends)} tracebacks {sorted(set(ends))[:5] or ''}"
    return Line("what replicas log of all these", "no traceback", measured, not ends)


def of_files(attack: str, names: Sequence[str]) -> Line:
    """The tests of some files, which attack a control plane of their own."""
    paths = [ROOT / "tests" / "e2e" / name for name in names]
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        return Line(attack, "its tests pass", f"not there: {', '.join(missing)}", False)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, paths)]
    environment = {**os.environ, "BAYPLAN_E2E": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    last = (done.stdout.strip().splitlines() or ["nothing was said"])[-1]
    return Line(attack, "its tests pass", last, done.returncode == 0)


def rounds(seconds: float, seed: int) -> Line:
    """Rounds of chaos; each is told on standard error."""
    attack, bound = f"chaos, {seconds:g} s in rounds", "no double, no lost, no unused hold"
    try:
        played = chaos.run(seconds, seed, lambda text: print(text, file=sys.stderr, flush=True))
    except Missing as error:
        return Line(attack, bound, str(error), False)
    broken = [str(entry.number) for entry in played if entry.broken]
    measured = f"{len(played)} rounds, {sum(len(entry.faults) for entry in played)} faults, seed {seed}"
    return Line(attack, bound, f"{measured}, broken: {', '.join(broken) or 'none'}", not broken)


@dataclass(frozen=True, slots=True)
class Options:
    """`parts`: what is attacked; `reviews`: how many are fuzzed, from the number `first` on; `seconds`: how
    long chaos lasts, in the rounds of `seed`."""

    parts: Collection[str]
    reviews: int = REVIEWS
    first: int = 0
    seconds: float = chaos.SECONDS
    seed: int = chaos.SEED


def on_one_plane(options: Options) -> Iterator[Line]:
    """Those that share a control plane, as soon as they are measured."""
    parts = [part for part in ON_ONE_PLANE if part in options.parts]
    if not parts:
        return
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
            for part in parts:
                yield from ON_ONE_PLANE[part](plane.api, replicas, options)
            yield memory(limit, why, replicas)
            yield logs(replicas.output())
        finally:
            replicas.stop()
            if limit is not None:
                limit.close()


ON_ONE_PLANE: dict[str, Callable[[Api, LimitedReplicas, Options], Iterable[Line]]] = {
    "bombs": lambda _, replicas, __: [bombs(replicas)],
    "siege": lambda _, replicas, __: siege(replicas, MEMORY, SLOWER),
    "noisy": lambda api, replicas, _: [noisy_neighbour(api, replicas)],
    "patched": lambda api, replicas, options: [patched(api, replicas.ports, options.reviews)],
    "fuzz": lambda _, replicas, options: [fuzz(replicas.ports, options.reviews, options.first)],
}
PARTS = (*ON_ONE_PLANE, *FILES, "chaos")


def lines(options: Options) -> Iterator[Line]:
    """Every line of the parts."""
    yield from on_one_plane(options)
    for attack, names in FILES.items():
        if attack in options.parts:
            yield of_files(attack, names)
    if "chaos" in options.parts and options.seconds:
        yield rounds(options.seconds, options.seed)


def main(options: Options, report: Callable[[str], None] = print) -> int:
    """The table; 1 where a line does not hold."""
    held = True
    report(HEAD)
    for line in lines(options):
        report(str(line))
        held = held and line.holds
    return 0 if held else 1


def options_of(arguments: Sequence[str]) -> Options:
    """What a command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.run")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all without any")
    parser.add_argument("--reviews", type=int, default=REVIEWS, help="how many are fuzzed")
    parser.add_argument("--first", type=int, default=0, help="the number of the first fuzzed review")
    parser.add_argument("--chaos", dest="seconds", type=float, default=chaos.SECONDS, help="seconds of chaos")
    parser.add_argument("--seed", type=int, default=chaos.SEED, help="of the rounds of chaos")
    options = Options(**vars(parser.parse_args(arguments)))
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return options if options.parts else replace(options, parts=PARTS)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.exit(main(options_of(sys.argv[1:])))
