"""Who gets a place: one of two gangs that compete for it, and a waiting gang before a new one."""

from __future__ import annotations

import json
import ssl
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.e2e.api import Json
from tests.e2e.processes import wait_until
from tests.e2e.replicas import LEASES, RESERVATIONS, Replicas, job, reservations
from tests.e2e.serving import replicas_of
from tests.e2e.stage import Cluster
from tests.webhook.calls import patched, review

JOBS = "/apis/batch/v1/namespaces/research/jobs"
PODS = "/api/v1/namespaces/research/pods"
RACES = 200
BEHIND = "BehindOthers"
LEASE = LEASES.format("default") + "/bayplan-controller"


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """One rack of two nodes, and two replicas."""
    with replicas_of(cluster, tmp_path_factory.mktemp("queue"), 1, 2) as replicas:
        yield replicas


def decision(stored: Json) -> str:
    """The decision in the Job's annotation."""
    return str(json.loads(stored["metadata"]["annotations"]["bayplan.dev/placement"])["decision"])


def answer(serving: Replicas, replica: int, path: str, body: Json) -> Json:
    """The response of one replica to a review that is posted as the API server would."""
    context = ssl.create_default_context(cafile=str(serving.certs / "ca-bundle.crt"))
    address = f"https://127.0.0.1:{serving.ports[replica]}{path}"
    call = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(call, timeout=60, context=context) as reply:
        return dict(json.loads(reply.read())["response"])


def mutated(serving: Replicas, replica: int, body: Json, *, dry_run: bool = False) -> str:
    """The decision of one replica about a Job, repeated if a busy machine left it no time."""
    while True:
        response = answer(serving, replica, "/mutate", review(body, dry_run=dry_run))
        if response["allowed"]:
            return decision(patched(body, response))
        assert "apply again" in response["status"]["message"], response


def test_of_two_gangs_that_reach_two_replicas_at_once_one_has_the_last_rack_and_one_waits(
    serving: Replicas, capsys: pytest.CaptureFixture[str]
) -> None:
    """200 times; each time one reservation is there, of the gang that was admitted."""
    wins, started = [0, 0], time.monotonic()
    with ThreadPoolExecutor(2) as callers:
        for number in range(RACES):
            gangs = [job(f"{side}-{number}", 2) for side in ("left", "right")]
            decisions = list(
                callers.map(lambda side, gangs=gangs: mutated(serving, side, gangs[side]), (0, 1))
            )
            assert sorted(decisions) == ["admitted", "queued"], number
            winner = decisions.index("admitted")
            wins[winner] += 1
            held = reservations(serving.api)
            assert list(held) == [f"research/Job/{gangs[winner]['metadata']['name']}"]
            (hold,) = held.values()
            serving.api.delete(f"{RESERVATIONS}/{hold['metadata']['name']}")
            for side in (0, 1):
                rehearsal = job("next", 2)
                wait_until(
                    lambda side=side, body=rehearsal: (
                        mutated(serving, side, body, dry_run=True) == "admitted"
                    ),
                    "the release to be seen",
                    pause=0.01,
                )
    took = time.monotonic() - started
    with capsys.disabled():
        print(f"\n{RACES} races through two replicas in {took:.0f} s, won {wins[0]} to {wins[1]}")


def is_in_the_queue(serving: Replicas, name: str) -> bool:
    """Returns whether the Job's pods wait at the scheduling gate."""
    pods = serving.api.items(PODS, labelSelector=f"job-name={name}")
    return len(pods) == 2 and all(pod["spec"].get("schedulingGates") for pod in pods)


def leader(serving: Replicas) -> int:
    """The index of the replica that leads, or -1 if none does."""
    holder = serving.api.get(LEASE)["spec"].get("holderIdentity") or ""
    pids = [f"_{process.popen.pid}_" for process in serving.processes]
    return next((number for number, pid in enumerate(pids) if pid in holder), -1)


@contextmanager
def nobody_leads(serving: Replicas) -> Iterator[int]:
    """Kills the leader and gives its Lease to another holder until the end, however long a busy machine
    takes; yields the index of the remaining replica.
    """
    wait_until(lambda: leader(serving) >= 0, "a leader")
    killed = leader(serving)
    serving.kill(killed)
    serving.api.merge(LEASE, {"spec": {"holderIdentity": "a test", "leaseDurationSeconds": 3600}})
    try:
        yield 1 - killed
    finally:
        serving.api.merge(LEASE, {"spec": {"holderIdentity": ""}})
        serving.restart(killed)


def test_what_is_applied_while_a_place_is_free_comes_behind_the_gang_that_waits_for_it(
    serving: Replicas,
) -> None:
    """While nobody leads, nobody lets the waiting gang in; the place stays its own.

    Nobody else releases what is gone: here an administrator does.

    Ages are whole seconds, and among equals names decide: so the newcomer's comes after the other's.
    """
    api = serving.api

    def is_behind(replica: int) -> bool:
        assert mutated(serving, replica, job("yields", 1), dry_run=True) == "queued"
        return [line["planReason"] for line in serving.lines() if line.get("name") == "yields"][-1] == BEHIND

    assert decision(api.create(JOBS, job("runs", 2))) == "admitted"
    assert decision(api.create(JOBS, job("waits", 2))) == "queued"
    wait_until(lambda: is_in_the_queue(serving, "waits"), "it to wait")
    with nobody_leads(serving) as replica:
        api.delete(f"{JOBS}/runs")
        wait_until(lambda: not api.items(PODS, labelSelector="job-name=runs"), "its pods to go")
        api.delete(f"{RESERVATIONS}/{reservations(api)['research/Job/runs']['metadata']['name']}")
        wait_until(lambda: is_behind(replica), "the replica to see the place free")
        assert decision(api.create(JOBS, job("yields", 1))) == "queued"
        assert reservations(api) == {}
    wait_until(lambda: "research/Job/waits" in reservations(api), "the waiting gang to have the place", 60)
    assert list(reservations(api)) == ["research/Job/waits"]
    for name in ("waits", "yields"):
        api.delete(f"{JOBS}/{name}")
    wait_until(lambda: not api.items(PODS), "the pods to go", 60)
    wait_until(lambda: not reservations(api), "the reservations to go", 60)
    for port in serving.ports:
        wait_until(lambda port=port: serving.is_ready(port), "each to be back", 90)


def test_a_namespace_that_has_nothing_goes_before_the_gang_of_one_that_has_much(serving: Replicas) -> None:
    """One of two nodes is free, and a gang of research waits for both: its next Job waits behind it, and
    that of inference does not, whichever replica answers."""
    api = serving.api
    assert decision(api.create(JOBS, job("runs", 1))) == "admitted"
    assert decision(api.create(JOBS, job("waits", 2))) == "queued"
    small = job("small", 1, gpus=1)
    small["metadata"]["namespace"] = "inference"
    for side in (0, 1):
        wait_until(
            lambda side=side: mutated(serving, side, job("yields", 1, gpus=1), dry_run=True) == "queued",
            "the replica to see who waits",
        )
        assert mutated(serving, side, small, dry_run=True) == "admitted"
    for name in ("waits", "runs"):
        api.delete(f"{JOBS}/{name}")
    wait_until(lambda: not api.items(PODS), "the pods to go", 60)
    wait_until(lambda: not reservations(api), "the reservations to go", 60)
