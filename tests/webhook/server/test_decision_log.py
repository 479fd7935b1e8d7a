"""A decision leaves one line of JSON, by which it is found again, and is counted by policy."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson
import pytest

from planner.model.pod import BoundPod
from planner.model.reservation import Reservation
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import gang, racks
from tests.webhook.calls import Serve, example, review
from webhook.placement.fair_order import WaitingGang
from webhook.policy import PolicySet
from webhook.server.metrics import metrics
from webhook.server.standing_metrics import AGES, Standing, age_of

NEVER = "job-76-gpus-one-rack"
FITS = "job-six-nodes-one-rack"
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def decisions(caplog: pytest.LogCaptureFixture) -> list[Any]:
    """The lines of decisions in the log."""
    lines = [record.getMessage() for record in caplog.records]
    assert not any("\n" in line for line in lines)
    return [orjson.loads(line) for line in lines if '"decision"' in line]


def lacking() -> Any:
    """A job whose pods no node takes."""
    obj = example(FITS)
    obj["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "none"}
    return obj


async def test_a_name_of_any_length_makes_no_long_line(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """The API server checks the name only after the webhooks."""
    obj = example(FITS)
    obj["metadata"]["name"] = "n" * 100_000
    with caplog.at_level(logging.INFO, "bayplan"):
        async with serve("superpod-32") as asked:
            await asked.client.post("/mutate", json=review(obj, uid=UID))
    (line,) = decisions(caplog)
    assert line["name"] == "n" * 252 + "…"
    assert len(orjson.dumps(line)) < 2_000


@pytest.mark.parametrize(("obj", "policy"), [(example(NEVER), "multi-topology"), (lacking(), "plan")])
async def test_a_decision_is_one_line_with_time_request_policy_and_message(
    obj: Any, policy: str, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """The time as RFC 3339 has it, the request's id, who refuses, and the words that the user sees."""
    with caplog.at_level(logging.INFO, "bayplan"):
        async with serve("superpod-32") as asked:
            body = review(obj, uid=UID)
            answer = (await (await asked.client.post("/mutate", json=body)).json())["response"]
    (line,) = decisions(caplog)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert datetime.fromisoformat(line["time"]).year >= 2024
    assert line["uid"] == UID == answer["uid"]
    assert (line["allowed"], line["policy"]) == (False, policy)
    assert line["message"] == answer["status"]["message"]


async def test_a_decision_tells_which_policies_changed_the_object(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """And nobody refuses."""
    with caplog.at_level(logging.INFO, "bayplan"):
        async with serve("superpod-32") as asked:
            await asked.mutate(example(FITS))
    (line,) = decisions(caplog)
    assert (line["allowed"], line["policy"], line["message"]) == (True, None, "")
    assert {"guaranteed-qos", "plan"} <= set(line["changedBy"])


async def test_decisions_are_counted_by_policy_and_answer(serve: Serve) -> None:
    """What changes it and what it passes."""
    async with serve("superpod-32") as asked:
        await asked.mutate(example(FITS))
        await asked.validate(example(FITS))
        text = await (await asked.client.get("/metrics")).text()
    assert 'bayplan_policy_answers_total{answer="changed",mode="enforce",policy="guaranteed-qos"} 1.0' in text
    assert re.search(
        r'bayplan_policy_answers_total\{answer="passed",mode="enforce",policy="[\w-]+"\} [1-9]', text
    )


async def test_a_hold_without_pods_is_counted_by_its_age(serve: Serve) -> None:
    """Until one of them is on a node; the clock is the server's."""
    async with serve("superpod-32") as asked:
        await asked.mutate(example(FITS))
        asked.now[0] += 5
        text = await (await asked.client.get("/metrics")).text()
        assert 'bayplan_unused_reservations{age="1m"} 1.0' in text
        assert 'bayplan_waiting_gangs{age="older"} 0.0' in text


def shown(standing: Standing) -> str:
    """What a scrape finds."""
    return metrics().exposition(PolicySet(), {}, True, standing).decode()


def test_the_queue_is_counted_by_age() -> None:
    """There are five series, however many gangs wait."""
    ages = (1, 59, 60, 700, 4000, 90_000, 900_000)
    waiting = [WaitingGang(gang(1, name=f"a/Job/{age}"), 1_000_000 - age) for age in ages]
    text = shown(Standing(1_000_000, None, waiting))
    assert [f'bayplan_waiting_gangs{{age="{name}"}} {count}.0' in text for name, count in
            zip((name for name, _ in AGES), (2, 1, 1, 1, 2), strict=True)] == [True] * 5  # fmt: skip
    assert text.count("\nbayplan_waiting_gangs{") == 5


def test_a_reservation_with_a_pod_on_a_node_is_in_use() -> None:
    """One with devices, where the gang asks for some; only those without one are counted."""
    snapshot = racks(2, 2)
    held: list[Reservation] = []
    for name in ("a/Job/a", "a/Job/b"):
        group = gang(1, name=name)
        taken = reservation_for(snapshot, group, plan(snapshot, group))
        assert taken is not None
        held.append(taken)
        snapshot = snapshot.with_reservation(taken)
    assert 'bayplan_unused_reservations{age="older"} 2.0' in shown(Standing(1e9, snapshot))
    empty = BoundPod("a/p", held[0].assignments[0].node, {}, reservation=held[0].id)
    beside = snapshot.with_pod(empty)
    assert 'bayplan_unused_reservations{age="older"} 2.0' in shown(Standing(1e9, beside))
    snapshot = snapshot.with_pod(replace(empty, requests={"nvidia.com/gpu": 8}))
    assert 'bayplan_unused_reservations{age="older"} 1.0' in shown(Standing(1e9, snapshot))


@pytest.mark.parametrize("gauge", ["bayplan_unused_reservations", "bayplan_waiting_gangs"])
def test_what_is_unknown_is_not_shown(gauge: str) -> None:
    """The number of an earlier scrape says nothing about now, and a zero would end an alert."""
    shown_before = metrics()
    text = shown_before.exposition(PolicySet(), {}, True, Standing(0, racks(2, 2), ())).decode()
    assert f'\n{gauge}{{age="older"}} 0.0' in text
    later = shown_before.exposition(PolicySet(), {}, True, Standing(0)).decode()
    assert f"\n{gauge}{{" not in later


async def test_a_server_that_does_not_know_the_cluster_yet_shows_no_queue(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until its watches have listed what there is."""
    async with serve("superpod-32") as asked:
        monkeypatch.setattr(type(asked.service.cluster), "waiting", lambda _: "the first list of pods")
        text = await (await asked.client.get("/metrics")).text()
    assert "\nbayplan_waiting_gangs{" not in text


def test_the_end_of_the_certificate_is_shown_where_one_is_served() -> None:
    """In seconds since the epoch, as conventions have it."""
    line = 'bayplan_certificate_expiry_timestamp_seconds{certificate="serving"} '
    assert f"{line}1.7e+09" in shown(Standing(0, certificate_end=1.7e9))
    assert line not in shown(Standing(0))


@pytest.mark.parametrize(
    ("seconds", "name"), [(-5, "1m"), (59.9, "1m"), (60, "10m"), (3600, "1d"), (86_400, "older")]
)
def test_an_age_has_one_label(seconds: float, name: str) -> None:
    """The first whose bound it is below."""
    assert age_of(seconds) == name
