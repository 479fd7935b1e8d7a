"""Replicas of two releases side by side, as during every upgrade and rollback."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator

import pytest

from tests.e2e import storm
from tests.e2e.binaries import ROOT
from tests.e2e.conftest import policy_set
from tests.e2e.replicas import Release, Replicas
from tests.e2e.serving import replicas_of
from tests.e2e.stage import Cluster
from tests.manifests.releases import BEFORE, BESIDE
from tests.wheels import install_wheel, program

RACKS, GANGS = 10, 30


@pytest.fixture(scope="module", params=(BESIDE, BEFORE), ids=("the-oldest", "the-one-before"))
def former(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Another release: the wheel of its commit, with the policies of its image."""
    folder = tmp_path_factory.mktemp("former")
    done = subprocess.run(["git", "archive", request.param], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"this checkout's history does not reach back to {request.param}")
    source = folder / "source"
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(source, filter="data")
    policies = policy_set("default-scheduler", folder, source)
    return Release(str(program(install_wheel(source, folder))), policies)


@pytest.fixture(scope="module")
def mixed(cluster: Cluster, former: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """One replica of each release, on racks of two nodes."""
    folder = tmp_path_factory.mktemp("mixed")
    with replicas_of(cluster, folder, RACKS, storm.HOSTS, 2, former) as replicas:
        yield replicas


def test_replicas_of_two_releases_keep_one_book(mixed: Replicas) -> None:
    """More gangs at once than racks: each is placed or queued and no rack has two holders, whichever release
    decided, and each of the two placed some. What the former let in, this one releases when it is alone."""
    # 413 is a decision that took too long, as on a busy machine: what is decided counts here, not how fast.
    tally = storm.apply_all(mixed.api, "mixed", GANGS, (*storm.PASSING, 413))
    assert set(tally.outcomes) <= {"admitted", "queued"}, tally
    assert tally.outcomes.total() == GANGS
    assert tally.outcomes["admitted"] >= RACKS
    storm.is_sound(mixed.api)
    assert storm.every_admitted_gang_has_its_place(mixed.api)
    placed = [any(line.get("plan") == "admitted" for line in lines) for lines in mixed.lines_by_replica()]
    assert placed == [True, True]
    mixed.kill(0)
    storm.end_all(mixed.api)
