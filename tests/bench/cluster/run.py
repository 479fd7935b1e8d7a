"""Pods and Jobs that hold what they use, created by 1, 8 and 32 clients, with one replica and with three.

`make bench-cluster`, or `python -m tests.bench.cluster.run [PODS]`. It runs etcd and an API server of its
own (as `make e2e`), with 64 nodes of 8 GPUs; nothing schedules the pods. In the same run it measures the
API server alone and with a webhook that allows everything: only figures of one run can be compared.

A table row: objects a second; decisions an object (1 where no place was lost to another call); calls that
failed; CPU milliseconds an object of all replicas, of the API server, of etcd; writes an object of our own
kinds; the share of an object's time in which none of these works for it; and what the replicas could do if
each had a core, by their CPU. Deadlines are long, so that a machine that is busy with other things makes a
run slow and nothing else.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.e2e.api import Api, ApiError, Json
from tests.e2e.binaries import find
from tests.e2e.configured import CONFIGURATIONS, configure
from tests.e2e.controlplane import ControlPlane
from tests.e2e.kube_ledgers import install
from tests.e2e.kubectl import Kubectl
from tests.e2e.processes import Process, free_port, start, wait_until
from tests.e2e.real_kinds import SHARED, define
from tests.e2e.replicas import RESERVATIONS, Replicas, nodes, reservations, small_pod

ROOT = Path(__file__).parents[3]
PODS = "/api/v1/namespaces/research/pods"
RACKS, HOSTS, GPUS = 8, 8, 8
CLIENTS = (1, 8, 32)
GANGS = 300
SIZES = (1, 2, 1, 3, 1, 2)
"""Pods of one GPU of the Jobs, in turn: 300 of them fill 500 GPUs."""
TIMEOUT, DEADLINE = 30, 25
"""Seconds that the API server waits for a replica, and that a replica gives itself."""
REHEARSED = 60
"""Dry runs for the latency of a quiet call."""
TICKS = os.sysconf("SC_CLK_TCK")


def pod(name: str) -> Json:
    """One GPU."""
    return small_pod(name, "4", "8Gi")


def job(name: str) -> Json:
    """A gang of one to three pods of one GPU; it may be anywhere."""
    single = pod(name)
    size = SIZES[int(name[1:]) % len(SIZES)]
    spec = {**single["spec"], "restartPolicy": "Never"}
    run = {"completionMode": "Indexed", "completions": size, "parallelism": size}
    return {"metadata": single["metadata"], "spec": {**run, "template": {"spec": spec}}}


@dataclass(frozen=True, slots=True)
class Kind:
    """What is created: in which collection, and the object of a name."""

    word: str
    path: str
    make: Callable[[str], Json]


POD = Kind("pod", PODS, pod)
JOB = Kind("job", "/apis/batch/v1/namespaces/research/jobs", job)


@contextmanager
def control_plane(folder: Path) -> Iterator[tuple[ControlPlane, Kubectl]]:
    """etcd and an API server, with our kinds and 512 free GPUs."""
    programs = find()
    plane = ControlPlane(programs, folder)
    try:
        plane.start_etcd()
        plane.start_apiserver()
        kubectl = Kubectl(programs["kubectl"], plane.kubeconfig)
        install(kubectl)
        define(kubectl, *SHARED)
        fill(plane.api)
        yield plane, kubectl
    finally:
        plane.stop()


def fill(api: Api) -> None:
    """A namespace, and racks of free nodes."""
    api.create("/api/v1/namespaces", {"metadata": {"name": "research"}})
    for namespace in ("research", "default"):  # no controller manager makes them
        api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    topology, *hosts = nodes(RACKS, HOSTS, GPUS)
    api.create("/apis/kai.scheduler/v1alpha1/topologies", topology)
    for host in hosts:
        api.create("/api/v1/nodes", host)
        api.merge(f"/api/v1/nodes/{host['metadata']['name']}", {"spec": {"taints": None}})


@dataclass(frozen=True, slots=True)
class Created:
    """What came of creating pods: seconds for each that was created, and the others by status."""

    seconds: tuple[float, ...]
    failed: Counter[int]
    took: float


def create(api: Api, bodies: Sequence[Json], clients: int, path: str = PODS, **query: str) -> Created:
    """All of these, by so many clients, none of which tries twice."""
    failed: Counter[int] = Counter()

    def create_timed(body: Json) -> float | None:
        began = time.perf_counter()
        try:
            api.create(path, body, **query)
        except ApiError as error:
            failed[error.status] += 1
            return None
        return time.perf_counter() - began

    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as hands:
        seconds = [elapsed for elapsed in hands.map(create_timed, bodies) if elapsed is not None]
    return Created(tuple(seconds), failed, time.perf_counter() - began)


def clear(api: Api) -> None:
    """No pod, no Job, and nothing held."""
    for path in (POD.path, JOB.path):
        wait_until(partial(_cleared, api, path), "the objects to go", 600)
    wait_until(lambda: not api.items(RESERVATIONS), "the reservations to go", 120)


def _cleared(api: Api, path: str) -> bool:
    """Delete what is there; whether nothing is left."""
    # Deletions of a collection are calls of the webhook one after the other: on a busy machine those of
    # hundreds take longer than a client waits, and go on.
    with suppress(TimeoutError):
        api.call("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    return not api.items(path)


def cpu(process: Process) -> float:
    """CPU seconds so far."""
    fields = Path(f"/proc/{process.popen.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def writes(api: Api) -> float:
    """Writes of Reservations that the API server has taken so far."""
    pattern = r"^apiserver_request_total\{(.*)\} (\S+)$"
    total = 0.0
    for labels, value in re.findall(pattern, api.get("/metrics")["text"], re.MULTILINE):
        if (
            'resource="reservations"' in labels
            and 'code="2' in labels
            and re.search('verb="(POST|PUT|PATCH|DELETE)"', labels)
        ):
            total += float(value)
    return total


def tries(replicas: Replicas) -> Counter[str]:
    """Calls that created a pod, and decisions made for them, by the replicas' logs."""
    lines = [
        line
        for line in replicas.lines()
        if (line.get("event"), line.get("phase"), line.get("operation")) == ("decision", "mutate", "CREATE")
        and not line["dryRun"]
    ]
    return Counter(calls=len(lines), tries=sum(int(line["tries"]) for line in lines))


def load(plane: ControlPlane, replicas: Replicas, clients: int, count: int, kind: Kind = POD) -> str:
    """Create so many objects, and say in a line how that went."""
    api = plane.api
    parts = {"replicas": replicas.processes, "api": [plane.running("kube-apiserver")]}
    parts["etcd"] = [plane.running("etcd")]
    before = {name: sum(map(cpu, processes)) for name, processes in parts.items()}
    written, tried = writes(api), tries(replicas)
    created = create(api, [kind.make(f"p{number}") for number in range(count)], clients, kind.path)
    used = {
        name: 1000 * (sum(map(cpu, processes)) - before[name]) / count for name, processes in parts.items()
    }
    held = len(reservations(api))
    writ = (writes(api) - written) / count
    tried = tries(replicas) - tried
    clear(api)
    error = f"{dict(created.failed)}" if created.failed else "none"
    took = 1000 * statistics.fmean(created.seconds or (created.took,))
    return (
        f"{kind.word:4} {len(replicas.processes):8} {clients:8} {len(created.seconds):6}/{count:<4} {held:6} "
        f"{len(created.seconds) / created.took:8.1f} {tried['tries'] / max(tried['calls'], 1):10.2f} "
        f"{tried['tries'] - tried['calls']:10} {error:>16} "
        f"{percentiles(created.seconds):>16} {used['replicas']:9.1f} {used['api']:6.1f} {used['etcd']:6.1f} "
        f"{writ:7.2f} {1 - sum(used.values()) / took:6.0%} "
        f"{1000 * len(replicas.processes) / used['replicas']:8.1f}"
    )


HEAD = (
    f"{'':4} {'replicas':>8} {'clients':>8} {'created':>11} {'held':>6} {'a second':>8} {'decisions':>10} "
    f"{'conflicts':>10} {'errors':>16} {'p50 / p99 ms':>16} "
    f"{'CPU: ours':>9} {'API':>6} {'etcd':>6} {'writes':>7} {'waits':>6} {'by CPU':>8}"
)


def percentiles(seconds: Sequence[float]) -> str:
    """Median and 99th percentile, in milliseconds."""
    if not seconds:
        return "-"
    ordered = sorted(seconds)
    high = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return f"{1000 * statistics.median(ordered):.1f} / {1000 * high:.1f}"


def rehearse(api: Api, name: str) -> str:
    """The latency of a quiet call: dry runs, one after the other."""
    create(api, [pod(f"warm{number}") for number in range(5)], 1, dryRun="All")
    created = create(api, [pod(f"dry{number}") for number in range(REHEARSED)], 1, dryRun="All")
    return f"{name:28} {percentiles(created.seconds):>16}"


def with_empty_webhook(plane: ControlPlane, certs: Path, folder: Path) -> str:
    """The same beside a webhook that allows everything."""
    port, configured = free_port(), list[str]()
    pair = [str(certs / "tls.crt"), str(certs / "tls.key")]
    command = [sys.executable, "-m", "tests.bench.cluster.empty_webhook", str(port), *pair]
    process = start("empty", command, folder, {"PYTHONPATH": str(ROOT)})
    try:
        configure(plane.api, configured, port, certs)
        time.sleep(2)  # until the API server knows of it
        return rehearse(plane.api, "an empty webhook")
    finally:
        for path in configured:
            plane.api.delete(path)
        process.stop()
        wait_until(lambda: not plane.api.items(f"{CONFIGURATIONS}/mutatingwebhookconfigurations"), "its end")


def wait_longer(api: Api) -> None:
    """The API server waits for the webhooks as long as it can."""
    for kind in ("mutating", "validating"):
        path = f"{CONFIGURATIONS}/{kind}webhookconfigurations/bayplan"
        body = api.get(path)
        for webhook in body["webhooks"]:
            webhook["timeoutSeconds"] = TIMEOUT
        api.call("PUT", path, body)


def main(pod_count: int) -> None:
    """All of it."""
    with tempfile.TemporaryDirectory() as name, control_plane(Path(name)) as (plane, kubectl):
        folder, api = Path(name), plane.api
        quiet, rows = [rehearse(api, "no webhook")], []
        for count in (1, 3):
            place = folder / f"replicas-{count}"
            place.mkdir()
            options = ("--deadline", str(DEADLINE))
            replicas = Replicas(api, kubectl.kubeconfig, place, count, options=options)
            try:
                replicas.start()
                if count == 1:
                    quiet.append(with_empty_webhook(plane, replicas.certs, place))
                    time.sleep(2)
                replicas.configure()
                wait_longer(api)
                quiet.append(rehearse(api, f"Bayplan, {count} of it"))
                for clients in CLIENTS:
                    # A single client is given fewer: its rate needs no more to be seen.
                    number = pod_count if clients == max(CLIENTS) else pod_count // 8
                    rows.append(load(plane, replicas, clients, number))
                    print(rows[-1], file=sys.stderr, flush=True)
                rows.append(load(plane, replicas, max(CLIENTS), min(GANGS, pod_count), JOB))
                print(rows[-1], file=sys.stderr, flush=True)
                replicas.unconfigure()
            finally:
                replicas.stop()
    print("dry runs of a pod, one after the other: p50 / p99 ms", *quiet, "", HEAD, *rows, sep="\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 512)
