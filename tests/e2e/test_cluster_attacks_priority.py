"""A number in the pod template does not move a gang forward in the queue: only a PriorityClass sets its
priority.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.e2e.processes import wait_until
from tests.e2e.replicas import Replicas, events, job
from tests.e2e.serving import replicas_of
from tests.e2e.stage import Cluster

JOBS = "/apis/batch/v1/namespaces/research/jobs"


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """One rack of three nodes, watched by two replicas."""
    with replicas_of(cluster, tmp_path_factory.mktemp("priority"), racks=1, hosts=3) as replicas:
        yield replicas


def test_a_priority_in_a_template_is_ignored_with_a_warning(cluster: Cluster, serving: Replicas) -> None:
    """A rack is taken and two gangs wait: the younger states a priority of two billion, and stays behind."""
    serving.api.create(JOBS, job("busy", 3))
    serving.api.create(JOBS, job("patient", 3))
    time.sleep(1.1)  # creation times have seconds
    jumps = json.dumps(job("jumps", 3, priority=2_000_000_000))
    applied = cluster.kubectl("apply", "-f", "-", text=jumps)
    assert "spec.priority 2000000000 is ignored: no priorityClassName means 0" in applied.err
    wait_until(lambda: _has_event(serving, "patient", "position 1 of 2"), "the queue")
    assert _has_event(serving, "jumps", "position 2 of 2")
    for name in ("busy", "patient", "jumps"):
        serving.api.delete(f"{JOBS}/{name}")


def _has_event(serving: Replicas, name: str, words: str) -> bool:
    return any(words in message for _, message in events(serving.api, "Job", name))
