"""The storm of gangs again, while replicas are killed, watches are cut, and the API server is down for 20
seconds.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e import storm
from tests.e2e.binaries import find
from tests.e2e.conftest import policy_set
from tests.e2e.controlplane import ControlPlane
from tests.e2e.fleet import Fleet, namespace
from tests.e2e.kube_ledgers import install
from tests.e2e.kubectl import Kubectl
from tests.e2e.kubelet import Kubelet
from tests.e2e.processes import wait_until
from tests.e2e.real_kinds import SHARED, define
from tests.e2e.replicas import Balancer, Replicas, nodes

SEED = 7
AWAY_SECONDS = 20.0


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A separate control plane, whose API server the test may kill."""
    programs = find()
    with ControlPlane(programs, tmp_path) as plane:
        kubectl = Kubectl(programs["kubectl"], plane.kubeconfig)
        define(kubectl, *SHARED)
        install(kubectl)
        namespace(plane.api, "research")
        with Kubelet(plane.api):
            yield plane


@pytest.fixture
def wire(plane: ControlPlane) -> Iterator[Balancer]:
    """A proxy between the replicas and the API server whose connections can be cut."""
    balancer = Balancer([plane.port])
    yield balancer
    balancer.close()


@pytest.fixture
def serving(plane: ControlPlane, wire: Balancer, tmp_path: Path) -> Iterator[Replicas]:
    """Three replicas that reach the API server through the proxy."""
    kubeconfig = tmp_path / "wired.kubeconfig"
    kubeconfig.write_text(plane.kubeconfig.read_text().replace(f":{plane.port}", f":{wire.port}"))
    fleet = Fleet(plane.api)
    replicas = Replicas(plane.api, kubeconfig, tmp_path, 3, policy_set("default-scheduler", tmp_path))
    try:
        fleet.make(nodes(storm.RACKS, storm.HOSTS))
        replicas.start()
        replicas.configure()
        yield replicas
    finally:
        replicas.stop()


@contextmanager
def trouble(*makers: Callable[[threading.Event], None]) -> Iterator[None]:
    """Runs each disturbance in a thread until the end, and raises an error of any of them."""
    over, failed = threading.Event(), list[BaseException]()

    def run(make: Callable[[threading.Event], None]) -> None:
        try:
            make(over)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(make,)) for make in makers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]


def test_kills_cuts_and_an_api_server_that_is_away_lose_and_double_nothing(
    plane: ControlPlane, wire: Balancer, serving: Replicas, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each gang is placed or queued in the end, no rack has two holders, and nothing is left behind."""
    kills = cuts = 0

    def kill(over: threading.Event) -> None:
        nonlocal kills
        chance = random.Random(SEED)
        while not over.wait(chance.uniform(1.0, 3.0)):
            number = chance.randrange(3)
            serving.kill(number)
            kills += 1
            serving.restart(number)
            wait_until(lambda number=number: serving.is_ready(serving.ports[number]), "it to be back", 180)

    def cut(over: threading.Event) -> None:
        nonlocal cuts
        chance = random.Random(SEED + 1)
        while not over.wait(chance.uniform(2.0, 6.0)):
            cuts += wire.cut()

    def stop_the_server(over: threading.Event) -> None:
        time.sleep(5.0)
        plane.running("kube-apiserver").stop(signal.SIGKILL)
        time.sleep(AWAY_SECONDS)
        plane.start_apiserver()

    with trouble(kill, cut, stop_the_server):
        tally = storm.apply_all(plane.api, "chaos")
    assert set(tally.outcomes) <= {"admitted", "queued"}, tally
    assert tally.outcomes.total() == storm.GANGS
    wait_until(lambda: storm.every_admitted_gang_has_its_place(plane.api), "each place to be in the book", 60)
    storm.is_sound(plane.api)
    gone = storm.end_all(plane.api)
    with capsys.disabled():
        print(
            f"\n{kills} kills, {cuts} lost connections and an API server {AWAY_SECONDS:g} s away among "
            f"{storm.GANGS} gangs in {tally.seconds:.0f} s, {tally.retries} calls made again: "
            f"{dict(tally.outcomes)}; all places free {gone:.1f} s after the end"
        )
