"""Many gangs at once, as impatient users apply them, and the conditions that must hold in any case."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Container
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations

from tests.e2e.api import Api, ApiError, Json
from tests.e2e.processes import wait_until
from tests.e2e.replicas import GPU, RESERVATIONS, job, reservations

GANGS = int(os.environ.get("BAYPLAN_E2E_GANGS", "300"))
RACKS = int(os.environ.get("BAYPLAN_E2E_RACKS", "40"))
HOSTS, GPUS = 2, 8
"""Nodes of a rack, and GPUs of a node."""
AT_ONCE = 16
PATIENCE = 300.0
"""Seconds for which a user goes on to apply one gang."""
JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"
PLACEMENT = "bayplan.dev/placement"
PASSING = (409, 413, 429, 500, 503, 504)
"""What is answered while something is away, or busy with others so that a decision took too long (413): apply
again."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The results of the gangs ("admitted", "queued", "unplanned" or a status) and the number of repeated
    calls.
    """

    outcomes: Counter[str]
    retries: int
    seconds: float


def pods_of(number: int) -> int:
    """The number of pods of a gang, one or two. Each takes a whole node."""
    return 1 + number % 2


def apply_all(api: Api, prefix: str, gangs: int = GANGS, passing: Container[int] = PASSING) -> Tally:
    """Creates every gang, `AT_ONCE` at a time. A call that fails for a temporary reason is repeated, as a
    user of kubectl would.
    """
    started = time.monotonic()
    retries = 0

    def apply(number: int) -> str:
        nonlocal retries
        name, end = f"{prefix}-{number}", time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                return _noted(_created(api, name, pods_of(number)))
            except ApiError as error:
                if error.status not in passing:
                    return f"{error.status}"
            except OSError:
                pass  # the API server is away
            retries += 1
            time.sleep(0.5)
        return "never"

    with ThreadPoolExecutor(AT_ONCE) as users:
        outcomes = Counter(users.map(apply, range(gangs)))
    return Tally(outcomes, retries, time.monotonic() - started)


def create_again(api: Api, path: str, body: Json) -> int:
    """Creates an object and repeats the call after a temporary failure, as users and controllers do: a busy
    machine responds late. Returns the number of repeated calls.
    """
    end, again = time.monotonic() + PATIENCE, 0
    while True:
        try:
            api.create(path, body)
            return again
        except ApiError as error:
            if "already exists" in str(error):
                return again
            if error.status not in PASSING or time.monotonic() > end:
                raise
        time.sleep(0.2)
        again += 1


def _delete_again(api: Api, path: str) -> None:
    """Deletes an object and repeats the call after a temporary failure, as users and controllers do."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return api.delete(path)
        except ApiError as error:
            if error.status not in PASSING or time.monotonic() > end:
                raise
        time.sleep(0.2)


def _created(api: Api, name: str, pods: int) -> Json:
    try:
        return api.create(JOBS, job(name, pods))
    except ApiError as error:
        if "already exists" not in str(error):
            raise
        return api.get(f"{JOBS}/{name}")  # an answer was lost, the Job was not


def _noted(stored: Json) -> str:
    """The result according to the gang's own annotation; a Job without one was admitted unplanned."""
    note = stored["metadata"]["annotations"].get(PLACEMENT, "")
    return next((word for word in ("admitted", "queued") if f'"{word}"' in note), "unplanned")


def is_sound(api: Api) -> None:
    """Checks that no rack has two holders, no node is over its capacity, and no gang is there in part."""
    held = reservations(api)
    for reservation, other in combinations(held.values(), 2):
        assert not touched(reservation) & touched(other), (
            f"{reservation['spec']['gang']} and {other['spec']['gang']}"
        )
    for name, reservation in held.items():
        wanted = pods_of(int(name.rpartition("-")[2]))
        assert sum(part["count"] for part in reservation["spec"]["assignments"]) == wanted, name
    used = Counter[str]()
    for pod in api.items("/api/v1/pods", fieldSelector="spec.nodeName!="):
        if pod["status"].get("phase") not in ("Succeeded", "Failed"):
            limits = pod["spec"]["containers"][0].get("resources", {}).get("limits", {})
            used[pod["spec"]["nodeName"]] += int(limits.get(GPU, 0))
    assert {node: gpus for node, gpus in used.items() if gpus > GPUS} == {}


def every_admitted_gang_has_its_place(api: Api) -> bool:
    """Returns whether each Job that is admitted according to its annotation holds a reservation."""
    held = reservations(api)
    jobs = api.items(JOBS)
    admitted = {f"research/Job/{job['metadata']['name']}" for job in jobs if _noted(job) == "admitted"}
    return admitted <= set(held)


def touched(reservation: Json) -> set[str]:
    """Every node that the reservation holds or uses."""
    spec = reservation["spec"]
    return set(spec["nodes"]) | {assignment["node"] for assignment in spec["assignments"]}


def end_all(api: Api, patience: float = 180) -> float:
    """Deletes every Job and returns the seconds until no pod and no reservation is left."""
    started = time.monotonic()
    for item in api.items(JOBS):
        _delete_again(api, f"{JOBS}/{item['metadata']['name']}")
    wait_until(lambda: not api.items(PODS), "the pods to go", patience)
    wait_until(lambda: not api.items(RESERVATIONS), "the reservations to go", patience)
    return time.monotonic() - started
