"""A decision checks its deadline often, so its thread is free soon after it, however large the object.

Stretches without a look are counted in functions called, Python's and C's, so no machine is too slow for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from planner.cluster import switch_graph
from planner.model.reservation import Book
from tests.attack import storm
from tests.builders import racks
from tests.effort import fewest_steps, steps_so_far
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.admission.environment import Environment
from webhook.cli.common.inputs import policy_store
from webhook.wire.review import decode

POLICIES = policy_store([]).current
LONGEST = 100_000
"""Calls of functions between two looks: well below 100 ms of a core."""


@dataclass(slots=True)
class Looks:
    """The longest stretch between two looks, in steps; no time after `limit` looks."""

    limit: int
    steps: Callable[[], int] = int
    count: int = 0
    last: int = 0
    longest: int = 0

    def late(self) -> bool:
        self.count += 1
        now = self.steps()
        self.longest, self.last = max(self.longest, now - self.last), now
        return self.count > self.limit


def decided(obj: dict[str, Any], looks: Looks) -> Decision:
    """The decision, while calls are counted."""
    request = decode(orjson.dumps(storm.review_of(obj, "dear")))
    snapshot = racks(8, 8).with_book(Book(0, ()))
    switch_graph.load()  # as the server does before its first request
    with steps_so_far(builtins=True) as steps:
        looks.steps = steps
        try:
            return decide(request, POLICIES, snapshot, "mutate", Environment(late=looks.late))
        finally:
            looks.late()


DEAR = {
    "unlike PodSets": storm.unlike_job_set(10),
    "many unlike PodSets": storm.unlike_job_set(300),
    "PodSets": storm.job_set(100),
    "replicas that are gangs": storm.leader_worker_set(),
    "replicas": storm.deployment(),
    "environment": storm.job_set_with_variables(),
    "containers": storm.job_of_containers(),
}


@pytest.mark.parametrize("obj", DEAR.values(), ids=DEAR)
def test_no_long_stretch_of_work_without_a_look_at_the_time(obj: dict[str, Any]) -> None:
    """Of what takes long: reading, policies, search and explanation all ask."""
    looks = Looks(20_000)
    decided(obj, looks)
    assert looks.count > 100
    assert looks.longest < fewest_steps(LONGEST)


@pytest.mark.parametrize("size", [1_000, 10_000])
def test_managed_fields_make_no_stretch_longer(size: int) -> None:
    """They do not count as a large object, so nothing may walk them."""

    def longest(entries: int) -> int:
        pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "spec": o.pod_template(8)["spec"]}
        fields = {"f:spec": {"f:containers": {".": {}}}}
        managed = [{"manager": str(number), "fieldsV1": fields} for number in range(entries)]
        pod["metadata"] = {"name": "dear", "namespace": "storm", "managedFields": managed}
        looks = Looks(20_000)
        assert decided(pod, looks).response.allowed
        return looks.longest

    assert longest(size) < 2 * longest(1)
