"""A call whose decision takes too long: answered in words in time, and its thread is free."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from tests.webhook.admission.test_growth_of_work import job_set
from tests.webhook.calls import Serve, review
from webhook.server import service
from webhook.server.service import THREADS

JSON = {"Content-Type": "application/json"}


async def test_a_decision_that_takes_too_long_is_answered_in_words(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP 200 before the deadline of the call, with what took the time and what to make smaller.

    The decision has a thousandth of a long call, so that no busy machine comes near the call's own end.
    """
    monkeypatch.setattr(service, "ANSWER_SHARE", 0.999)
    monkeypatch.setattr(service, "BUSY_SHARE", 0.0)
    async with serve("superpod-32") as asked:
        asked.webhook.deadline = 60.0
        response = await asked.mutate(job_set(500))
    assert not response["allowed"]
    assert response["status"]["code"] == 413
    assert "took longer than one decision may. What would work:" in response["status"]["message"]


async def test_a_decision_that_a_busy_machine_left_no_time_is_asked_to_come_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The object is not to blame, and nothing in it is to be made smaller: 429, which clients repeat.

    Here no decision is ever taken for too large, however far past its time the machine lets it run.
    """
    monkeypatch.setattr(service, "ANSWER_SHARE", 0.999)
    monkeypatch.setattr(service, "BUSY_SHARE", 1e9)
    async with serve("superpod-32") as asked:
        asked.webhook.deadline = 60.0
        response = await asked.mutate(job_set(500))
    assert not response["allowed"]
    assert response["status"]["code"] == 429
    assert "the webhook has too much to do" in response["status"]["message"]
    assert "of the 0.1 s that it may take were worked on it; apply again" in response["status"]["message"]


async def test_a_call_that_ended_leaves_no_thread_at_work(serve: Serve) -> None:
    """Whoever hangs up gives the threads back to the others at once: each of these would take seconds."""
    async with serve("superpod-32") as asked:
        asked.webhook.deadline = 60.0
        body = orjson.dumps(review(job_set(500)))
        calls = [
            asyncio.ensure_future(asked.client.post("/mutate", data=body, headers=JSON))
            for _ in range(2 * THREADS)
        ]
        await asyncio.sleep(0.5)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        threads = asked.webhook.service.threads
        free = [asyncio.wrap_future(threads.submit(int)) for _ in range(THREADS)]
        await asyncio.wait_for(asyncio.gather(*free), 1.5)
