"""The policy engines that are measured side by side, with the same policies (`policies.py`), without a plan.

The API server evaluates them itself, Kyverno (`kyverno.py`) and Bayplan as webhooks. Bayplan runs without a
cluster here, so that it plans nothing and holds nothing, like the others.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.bench.cluster.policies import bindings, policies
from tests.e2e.api import Api, ApiError, Json
from tests.e2e.configured import configure, unconfigure
from tests.e2e.hook import BAYPLAN, make_certificates
from tests.e2e.processes import Process, free_port, start, wait_until

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"


@dataclass(slots=True)
class Engine:
    """A running policy engine: the processes whose CPU counts, none for the API server itself."""

    name: str
    processes: list[Process] = field(default_factory=list)


@contextmanager
def in_api_server(api: Api) -> Iterator[Engine]:
    """The API server evaluates the policies itself."""
    paths: list[str] = []
    for body in [*policies(), *bindings()]:
        where = f"{CONFIGURATIONS}/{body['kind'].lower().removesuffix('y')}ies"
        where = where if body["kind"].endswith("Policy") else f"{CONFIGURATIONS}/{body['kind'].lower()}s"
        api.create(where, body)
        paths.append(f"{where}/{body['metadata']['name']}")
    try:
        yield Engine("API server's own policies")
    finally:
        while paths:
            api.delete(paths.pop())


@contextmanager
def in_bayplan(api: Api, folder: Path) -> Iterator[Engine]:
    """Bayplan evaluates the policies, without a cluster."""
    folder.mkdir()
    path, port, configured = folder / "policies.yaml", free_port(), list[str]()
    path.write_text(yaml.safe_dump_all([*policies(), *bindings()], sort_keys=False))
    make_certificates(folder / "certs")
    command = [BAYPLAN, "serve", "--port", str(port), "-p", str(path), "--ledger", str(folder / "ledger.db")]
    command += [
        "--tls-cert",
        str(folder / "certs" / "tls.crt"),
        "--tls-key",
        str(folder / "certs" / "tls.key"),
    ]
    process = start("bayplan", command, folder)
    try:
        process.wait_until(lambda: _listens(port), 60)
        configure(api, configured, port, folder / "certs")
        yield Engine("Bayplan, policies alone", [process])
    finally:
        unconfigure(api, configured, list)
        process.stop()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def mutated(api: Api, pods: str, body: Json) -> Json:
    """What the policies wrote onto a pod, of a dry run; {} as long as they are not in force."""
    stored = api.create(pods, body, dryRun="All")
    metadata, spec = stored["metadata"], stored["spec"]
    if "bench.bayplan.dev/policies" not in metadata.get("annotations", {}):
        return {}
    main = spec["containers"][0]
    return {
        "labels": metadata["labels"],
        "schedulerName": spec["schedulerName"],
        "affinity": spec["affinity"],
        "tolerated": sorted(row["key"] for row in spec["tolerations"]),
        "env": main["env"],
        "resources": main["resources"],
    }


def wait_until_in_force(api: Api, pods: str, body: Json, seconds: float = 180) -> Json:
    """Waits until a dry run carries what the policies write, and returns that."""

    def is_mutated() -> bool:
        with suppress(ApiError):  # a webhook that starts has no certificate yet
            return bool(mutated(api, pods, body))
        return False

    wait_until(is_mutated, "the policies to be in force", seconds)
    time.sleep(2)  # each of the API server's caches of configurations follows for itself
    return mutated(api, pods, body)
