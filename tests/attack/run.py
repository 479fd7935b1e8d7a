"""Attacks on a real control plane with three replicas: a table with a bound for each line.

`make attack`, or `python -m tests.attack.run [REVIEWS]`. All of it is on loopback and ends by itself. The
exit status is 1 where a line does not hold. The last lines run tests, which have their own control plane.
Times compare with quiet ones of the same run: on a machine that does other work they say little.
"""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonpatch

from tests.attack import calls
from tests.attack.reviews import review
from tests.attack.storm import WORST
from tests.bench.cluster.run import control_plane, create, pod
from tests.e2e.api import Api, ApiError
from tests.e2e.replicas import Replicas

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
REVIEWS, CLIENTS = 100_000, 6
SAMPLE = 300
"""Patched objects that are held against the API server's own validation."""
CONNECTIONS, SIEGE_SECONDS = 2_000, 15.0
MEMORY = 400.0
"""MiB of one replica beside them."""
STORM_CLIENTS, HONEST_CALLS = 16, 150
SLOWER = 2.0
"""How many times its quiet p99 an honest caller's may be."""
PLACES = {
    "Pod": "/api/v1/namespaces/team/pods",
    "Job": "/apis/batch/v1/namespaces/team/jobs",
    "Deployment": "/apis/apps/v1/namespaces/team/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/team/statefulsets",
}
"""The kinds that an API server without operators validates."""
FILES = {
    "forged callers": ("test_cluster_callers.py", "test_cluster_attacks_forged.py"),
    "hoarding": ("test_cluster_attacks_hoarding.py",),
    "queue jumping": ("test_cluster_attacks_priority.py",),
    "stolen token": ("test_cluster_attacks_token.py",),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table."""

    attack: str
    bound: str
    measured: str
    holds: bool

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'FAILS':6} {self.attack:34} {self.bound:38} {self.measured}"


def fuzz(ports: Sequence[int], count: int) -> Line:
    """Reviews of every kind with anything wrong in them, in both phases."""
    began = time.monotonic()
    bodies = (review(number) for number in range(count))
    statuses = asyncio.run(calls.send(ports, bodies, CLIENTS, lambda _, __: None))
    wrong = sum(number for status, number in statuses.items() if status >= 500 or status == 0)
    measured = f"{dict(sorted(statuses.items()))} in {time.monotonic() - began:.0f} s"
    return Line(
        f"{count} fuzzed reviews, both phases", "no 5xx, no call without an answer", measured, not wrong
    )


def storable(number: int) -> Json | None:
    """The fuzzed review of this number as one that the API server may store, None where it is none."""
    body = review(number)
    request = body.get("request")
    obj = request.get("object") if isinstance(request, dict) else None
    if (
        not isinstance(obj, dict)
        or str(obj.get("kind")) not in PLACES
        or request.get("operation") != "CREATE"
    ):
        return None
    spec = obj.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        if obj["kind"] == "Job":
            template["spec"].setdefault("restartPolicy", "Never")
        elif isinstance(template.setdefault("metadata", {}), dict):
            labels = template["metadata"].setdefault("labels", {})
            if isinstance(labels, dict):
                labels["app"] = "demo"
            spec.setdefault("selector", {"matchLabels": {"app": "demo"}})
            if obj["kind"] == "StatefulSet":
                spec.setdefault("serviceName", "demo")
    return body


def patched(api: Api, ports: Sequence[int]) -> Line:
    """What the API server would store, it would store as patched too; nothing else asks it here."""
    refused: list[str] = []
    seen = 0

    def valid() -> Iterator[Json]:
        for number in range(1_000_000, 1_000_000 + 40 * SAMPLE):
            if seen >= SAMPLE:
                return
            body = storable(number)
            if body is not None and not _refusal(api, body["request"]["object"]):
                yield body

    def answered(body: Json, response: Json) -> None:
        nonlocal seen
        if not response["allowed"] or "patch" not in response:
            return
        seen += 1
        obj = jsonpatch.apply_patch(body["request"]["object"], base64.b64decode(response["patch"]).decode())
        refusal = _refusal(api, obj)
        if refusal:
            refused.append(f"{body['request']['uid']}: {refusal[:200]}")

    asyncio.run(calls.send(ports, valid(), 1, answered))
    measured = f"{seen} patched, {len(refused)} refused {refused[:2] or ''}"
    return Line(
        "patched objects, dry-run create",
        f"{SAMPLE} of {SAMPLE} accepted",
        measured,
        seen > 0 and not refused,
    )


def _refusal(api: Api, obj: Json) -> str:
    try:
        api.create(PLACES[obj["kind"]], obj, dryRun="All")
    except ApiError as error:
        return str(error)
    return ""


def noisy_neighbour(api: Api) -> Line:
    """One namespace creates the worst objects without a pause; another one its small pods."""
    bodies = [pod(f"p{number}") for number in range(HONEST_CALLS)]
    create(api, bodies[:20], 2, dryRun="All")
    quiet = create(api, bodies, 2, dryRun="All")
    stop = threading.Event()

    def storm(number: int) -> None:
        while not stop.is_set():
            path, body = WORST[number % len(WORST)]
            storming = {**body, "metadata": {**body["metadata"], "namespace": "storm", "name": f"s{number}"}}
            with suppress(ApiError):
                api.create(path.format("storm"), storming, dryRun="All")
            number += 1

    hands = [threading.Thread(target=storm, args=(number,), daemon=True) for number in range(STORM_CLIENTS)]
    for hand in hands:
        hand.start()
    time.sleep(2)
    loud = create(api, bodies, 2, dryRun="All")
    stop.set()
    for hand in hands:
        hand.join(30)
    before, during = p99(quiet.seconds), p99(loud.seconds)
    measured = f"{1000 * before:.0f} ms quiet, {1000 * during:.0f} ms; {loud.failed.total()} failed"
    holds = during < SLOWER * before and not loud.failed
    return Line(
        f"noisy neighbour, {STORM_CLIENTS} clients",
        f"p99 below {SLOWER:g} × quiet, none fails",
        measured,
        holds,
    )


def siege(replicas: Replicas) -> list[Line]:
    """Connections that never become calls, against one replica, beside an honest caller."""
    port, pid = replicas.ports[0], replicas.processes[0].popen.pid
    quiet, _ = asyncio.run(calls.honest(port, 5))
    lines = []
    kinds: tuple[calls.Hostile, ...] = ("idle", "no handshake", "endless body")
    for how in kinds:
        took, failed, peak = calls.besieged(
            port, how, CONNECTIONS, SIEGE_SECONDS, lambda: calls.resident(pid)
        )
        seen = f"p99 {1000 * p99(quiet):.0f} ms quiet, {1000 * p99(took):.0f} ms"
        measured = f"{peak:.0f} MiB; {seen}; {failed} failed"
        holds = peak < MEMORY and not failed and p99(took) < SLOWER * p99(quiet)
        bound = f"below {MEMORY:g} MiB, p99 below {SLOWER:g} × quiet"
        lines.append(Line(f"{CONNECTIONS} connections: {how}", bound, measured, holds))
    return lines


def p99(seconds: Sequence[float]) -> float:
    """The 99th percentile; without any, for ever."""
    return sorted(seconds)[int(0.99 * len(seconds))] if seconds else float("inf")


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


def lines(count: int) -> Iterator[Line]:
    """Every line, as soon as it is measured."""
    with tempfile.TemporaryDirectory() as name, control_plane(Path(name)) as (plane, kubectl):
        for namespace in ("team", "storm"):
            plane.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
            account = {"metadata": {"name": "default"}}
            plane.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
        replicas = Replicas(plane.api, kubectl.kubeconfig, Path(name), 3)
        try:
            replicas.start()
            yield fuzz(replicas.ports, count)
            yield patched(plane.api, replicas.ports)
            yield from siege(replicas)
            replicas.configure()
            yield noisy_neighbour(plane.api)
            replicas.unconfigure()
        finally:
            replicas.stop()
    for attack, names in FILES.items():
        yield of_files(attack, names)


def main(count: int, log: Callable[[str], None] = print) -> int:
    """The table; 1 where a line does not hold."""
    held = True
    log(f"{'':6} {'attack':34} {'bound':38} measured")
    for line in lines(count):
        log(str(line))
        held = held and line.holds
    return 0 if held else 1


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else REVIEWS))
