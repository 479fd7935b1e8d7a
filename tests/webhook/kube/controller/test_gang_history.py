"""The ends of gangs on their way into the ConfigMap."""

from dataclasses import replace

import pytest
import yaml

from planner.manifests.cluster import read
from tests.builders import gang, racks
from tests.webhook.kube.worlds import held, work, world
from webhook.kube.api.client import Api, ApiError
from webhook.kube.controller.gang_history import PAUSE, GangHistoryWriter
from webhook.kube.state.gangs import failed
from webhook.kube.state.gathering import gangs_of


class Kept(Api):
    """Keeps what is merged, or answers with a status."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.merged: list[tuple[str, dict]] = []

    async def merge(self, path, body, **query):
        if self.status:
            raise ApiError(self.status, "", "no")
        self.merged.append((path, body))
        return {}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def after(api, count=1, *, well=False):
    """The outcomes of so many gangs that ended in rack r1."""
    moment, clock = racks(2, 4), Clock()
    outcomes = GangHistoryWriter(api, "bayplan-system", clock)
    for _ in range(count):
        outcomes.note(moment, held(moment, gang(2, required="rack")), well=well)
    return moment, clock, outcomes


async def test_a_gang_that_failed_is_written_under_its_rack():
    """Into the one ConfigMap, as the planner reads it."""
    api = Kept()
    moment, _, outcomes = after(api)
    await outcomes.write(moment)
    ((path, body),) = api.merged
    assert path == "/api/v1/namespaces/bayplan-system/configmaps/topology-scheduler-history"
    assert yaml.safe_load(body["data"]["history.yaml"]) == {"topo/r1": 0.7}
    stored = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": path.rsplit("/", 1)[1]}, **body}
    assert read([("c.yaml", stored)]).base.settings.history == {"topo/r1": 0.7}


async def test_what_ends_soon_after_a_write_is_written_with_the_next():
    """Every write changes the picture of every replica."""
    api = Kept()
    moment, clock, outcomes = after(api)
    await outcomes.write(moment)
    outcomes.note(moment, held(moment, gang(2, required="rack")), well=False)
    clock.now = PAUSE - 1
    await outcomes.write(moment)
    assert len(api.merged) == 1
    clock.now = PAUSE
    base = replace(moment.base, settings=replace(moment.base.settings, history={"topo/r1": 0.7}))
    await outcomes.write(replace(moment, base=base))
    assert yaml.safe_load(api.merged[1][1]["data"]["history.yaml"]) == {"topo/r1": 0.49}


async def test_where_all_ends_well_nothing_is_written():
    """A leaf without history is as good as one where nothing ever failed."""
    api = Kept()
    moment, _, outcomes = after(api, well=True)
    await outcomes.write(moment)
    assert api.merged == []


@pytest.mark.parametrize(("status", "kept"), [(503, 1), (404, 0)])
async def test_a_server_that_does_not_take_it_stops_nobody(status, kept, caplog):
    """It is tried again later; where there is no such ConfigMap, forgotten. The log says so."""
    api = Kept(status)
    moment, clock, outcomes = after(api)
    await outcomes.write(moment)
    assert "history" in caplog.text
    api.status, clock.now = 0, PAUSE
    await outcomes.write(moment)
    assert len(api.merged) == kept


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"conditions": [{"type": "Failed", "status": "True"}]}, True),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, False),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, False),
        ({"jobStatus": "FAILED"}, True),
        ({"jobStatus": "SUCCEEDED"}, False),
        ({"phase": "Failed"}, True),
        ({}, False),
    ],
)
def test_failed_is_what_a_workload_says_of_itself(status, expected):
    """A condition, Ray's job status, or the phase of a pod."""
    assert failed({"status": status}) is expected


def test_a_gang_knows_that_its_workload_failed():
    """From the workload to the gang."""
    group = gang(2)
    failed_work = replace(work(group, finished=True), failed=True)
    assert gangs_of([failed_work], [])[group.name].failed
    assert world(racks(1, 2), works=(failed_work,)).works[0].failed
