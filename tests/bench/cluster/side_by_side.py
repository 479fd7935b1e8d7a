"""What the same policies cost in the API server itself, in Bayplan and in Kyverno, and Bayplan with its plan.

`make bench-cluster KYVERNO=DIR`, or `KYVERNO=DIR python -m tests.bench.cluster.side_by_side [PODS]`; without
a checkout of Kyverno its row is left out. All of it runs on one control plane, one engine after the other,
and each must write the same onto a pod. Only figures of one run can be compared.

A row: the latency of a dry run of a pod when quiet, and what the engine adds to it; CPU milliseconds a pod
of the engine and of the API server in these dry runs; and a burst of pods from 32 clients: seconds, p99, CPU.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.bench.cluster.engines import Engine, in_api_server, in_bayplan, wait_until_in_force
from tests.bench.cluster.kyverno import in_kyverno
from tests.bench.cluster.run import (
    CLIENTS,
    DEADLINE,
    PODS,
    clear,
    control_plane,
    cpu,
    create,
    percentiles,
    pod,
    wait_longer,
)
from tests.e2e.api import Json
from tests.e2e.controlplane import ControlPlane
from tests.e2e.kubectl import Kubectl
from tests.e2e.processes import Process
from tests.e2e.replicas import Replicas
from tests.schedulers.programs import Source

DRY_RUNS = 200
HEAD = (
    f"{'':34} {'p50 / p99 ms':>16} {'added':>6} {'CPU: its':>9} {'API':>6} | "
    f"{'created':>9} {'seconds':>8} {'p99 ms':>8} {'CPU: its':>9} {'API':>6}"
)


@contextmanager
def nothing() -> Iterator[Engine]:
    """The API server without policies."""
    yield Engine("no policy")


@contextmanager
def with_plan(plane: ControlPlane, kubectl: Kubectl, folder: Path) -> Iterator[Engine]:
    """One replica of Bayplan with the shipped policies, which plans and reserves."""
    folder.mkdir()
    options = ("--deadline", str(DEADLINE))
    replicas = Replicas(plane.api, kubectl.kubeconfig, folder, 1, options=options)
    try:
        replicas.start()
        # Called directly, as the other engines: the balancer of several replicas is in the client's process.
        replicas.configure(replicas.ports[0])
        wait_longer(plane.api)
        yield Engine("Bayplan, shipped policies and plan", replicas.processes)
        replicas.unconfigure()
    finally:
        replicas.stop()


def row(plane: ControlPlane, engine: Engine, count: int, quiet: float) -> tuple[str, float]:
    """Measures an engine; returns its row, and the median of its dry runs in milliseconds.

    `quiet`: the median without policies, 0 if this is that row.
    """
    api, server = plane.api, plane.running("kube-apiserver")
    create(api, [pod(f"warm{number}") for number in range(20)], 1, dryRun="All")
    before = _used(engine.processes), cpu(server)
    dry = create(api, [pod(f"dry{number}") for number in range(DRY_RUNS)], 1, dryRun="All")
    own, served = _used(engine.processes) - before[0], cpu(server) - before[1]
    median = 1000 * statistics.median(dry.seconds)
    text = (
        f"{engine.name:34} {percentiles(dry.seconds):>16} {median - quiet if quiet else 0:6.1f} "
        f"{1000 * own / DRY_RUNS:9.1f} {1000 * served / DRY_RUNS:6.1f} | "
    )
    before = _used(engine.processes), cpu(server)
    burst = create(api, [pod(f"p{number}") for number in range(count)], max(CLIENTS))
    own, served = _used(engine.processes) - before[0], cpu(server) - before[1]
    clear(api)
    latency = percentiles(burst.seconds).rpartition("/ ")[2]
    text += f"{len(burst.seconds):5}/{count:<3} {burst.took:8.1f} {latency:>8} "
    return text + f"{1000 * own / count:9.1f} {1000 * served / count:6.1f}", median


def _used(processes: Sequence[Process]) -> float:
    return sum(map(cpu, processes))


def main(count: int) -> None:
    """Prints the table. Raises AssertionError if two engines write something else onto a pod."""
    with tempfile.TemporaryDirectory() as name, control_plane(Path(name)) as (plane, kubectl):
        folder, api, probe = Path(name), plane.api, pod("probe")
        engines: list[AbstractContextManager[Engine]] = [
            in_api_server(api),
            in_bayplan(api, folder / "bayplan"),
        ]
        if home := os.environ.get("KYVERNO"):
            engines.append(in_kyverno(Source(Path(home)), api, kubectl, folder / "kyverno"))
        print(HEAD, flush=True)
        with nothing() as engine:
            text, quiet = row(plane, engine, count, 0)
            print(text, flush=True)
        written: list[Json] = []
        for context in engines:
            with context as engine:
                written.append(wait_until_in_force(api, PODS, probe))
                assert written[-1] == written[0], f"{engine.name} writes {written[-1]}, not {written[0]}"
                print(row(plane, engine, count, quiet)[0], flush=True)
            time.sleep(3)  # until the API server knows that the engine is not to be called any more
        with with_plan(plane, kubectl, folder / "plan") as engine:
            print(row(plane, engine, count, quiet)[0], flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 512)
