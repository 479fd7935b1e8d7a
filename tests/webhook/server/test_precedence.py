"""Of two decisions that run at once, the one that has worked long stands still."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from planner.cluster.plan_cache import PlanCache, own_lane
from planner.model.effort.deadline import no_deadline
from tests.webhook.admission.test_growth_of_work import job_set
from tests.webhook.calls import Serve
from webhook.server import precedence
from webhook.server.precedence import SHORT, Precedence

EVER = 1e9
SOON, AWHILE, IDLE = 30.0, 0.2, 1.0
"""Seconds within which something has happened on any machine, and in which it would have; seconds in which a
process that has work has some of a core."""


class Decision(threading.Thread):
    """A long decision: it works, and asks at each step, until it is told to end."""

    def __init__(self, decisions: Precedence) -> None:
        super().__init__(daemon=True)
        self.decisions = decisions
        self.steps = 0
        self.is_long, self.ended = threading.Event(), threading.Event()

    def run(self) -> None:
        began = time.thread_time()
        with self.decisions.running(self.ended.is_set, "large") as asked:
            while not asked():
                self.steps += 1
                if time.thread_time() - began > 2 * SHORT:
                    self.is_long.set()

    def stands_still(self) -> bool:
        """Whether it makes no step for a while."""
        steps = self.steps
        time.sleep(AWHILE)
        return self.steps == steps


def eventually(true: Callable[[], bool]) -> bool:
    """Whether it becomes true, however slow the machine is."""
    end = time.monotonic() + SOON
    while not true() and time.monotonic() < end:
        time.sleep(0.001)
    return true()


@pytest.fixture
def decision() -> Decision:
    """One that has worked long already."""
    decided = Decision(Precedence())
    decided.start()
    assert decided.is_long.wait(SOON)
    return decided


def test_a_long_decision_stands_still_while_a_short_one_runs(
    decision: Decision, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It continues as soon as the short one ends."""
    monkeypatch.setattr(precedence, "PATIENCE", EVER)
    assert not decision.stands_still()
    with decision.decisions.running(no_deadline, "calm"):
        assert eventually(decision.stands_still)
    assert eventually(lambda: not decision.stands_still())
    decision.ended.set()
    decision.join(SOON)


def test_a_long_decision_goes_on_beside_one_that_has_become_long_too(
    decision: Decision, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two long decisions do not wait for each other."""
    monkeypatch.setattr(precedence, "PATIENCE", EVER)
    second = Decision(decision.decisions)
    second.start()
    assert second.is_long.wait(SOON)
    assert eventually(lambda: not decision.stands_still())
    assert eventually(lambda: not second.stands_still())
    for running in (decision, second):
        running.ended.set()
        running.join(SOON)


def test_a_decision_of_a_flow_that_took_long_stands_still_from_its_first_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is short runs beside nobody of a storm, though each request of it may turn out to be refused."""
    monkeypatch.setattr(precedence, "PATIENCE", EVER)
    decisions, steps = Precedence(), 0
    with decisions.running(no_deadline, "storm") as asked:
        began = time.thread_time()
        while time.thread_time() - began < 2 * SHORT:
            asked()
    ended = threading.Event()

    def decide() -> None:
        nonlocal steps
        with decisions.running(ended.is_set, "storm") as asked:
            while not asked():
                steps += 1

    with decisions.running(no_deadline, "calm"):
        storm = threading.Thread(target=decide, daemon=True)
        storm.start()
        time.sleep(AWHILE)
        assert steps == 0
    assert eventually(lambda: steps > 0)
    ended.set()
    storm.join(SOON)


def test_a_flow_is_taken_for_short_again_after_short_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant that once created something large is not slower for ever: seven short ones are enough."""
    monkeypatch.setattr(precedence, "SHORT", 0.05)
    decisions, steps = Precedence(), 0
    with decisions.running(no_deadline, "tenant"):
        began = time.thread_time()
        while time.thread_time() - began < 0.5:
            pass
    for _ in range(7):
        with decisions.running(no_deadline, "tenant"):
            pass
    monkeypatch.setattr(precedence, "PATIENCE", EVER)

    def decide() -> None:
        nonlocal steps
        with decisions.running(no_deadline, "tenant") as asked:
            asked()  # stands still as long as the other runs, where its flow counts as long
            steps += 1

    with decisions.running(no_deadline, "calm"):
        tenant = threading.Thread(target=decide, daemon=True)
        tenant.start()
        assert eventually(lambda: steps == 1)
    tenant.join(SOON)


def test_short_decisions_without_end_leave_a_long_one_a_third_of_its_time(decision: Decision) -> None:
    """It stands still for twice as long as it has worked, and then goes on."""
    steps = decision.steps
    with decision.decisions.running(no_deadline, "calm"):
        assert eventually(lambda: decision.steps > steps + 1000)
    decision.ended.set()
    decision.join(SOON)


def test_a_decision_that_stands_still_ends_with_its_call(
    decision: Decision, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread is free while the short decision still runs."""
    monkeypatch.setattr(precedence, "PATIENCE", EVER)
    with decision.decisions.running(no_deadline, "calm"):
        assert eventually(decision.stands_still)
        decision.ended.set()
        decision.join(SOON)
        assert not decision.is_alive()


def test_a_long_decision_that_stands_still_in_a_search_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The short one searches at once, with entries of the plan cache of its own."""
    monkeypatch.setattr(precedence, "PATIENCE", EVER)
    decisions, cache = Precedence(), PlanCache()
    decision = Decision(decisions)

    def search() -> None:
        with own_lane():
            cache.exclusively(lambda: Decision.run(decision))

    monkeypatch.setattr(decision, "run", search)
    decision.start()
    assert decision.is_long.wait(SOON)
    with own_lane(), decisions.running(no_deadline, "calm"):
        assert cache.exclusively(lambda: eventually(decision.stands_still))
    decision.ended.set()
    decision.join(SOON)


async def test_the_worst_object_of_a_neighbour_waits_while_a_pod_is_decided(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JobSet of 50 PodSets is not answered, and not worked on, before what is short has ended."""
    monkeypatch.setattr(precedence, "PATIENCE", EVER)
    async with serve("superpod-32") as asked:
        asked.webhook.deadline = 300.0
        with asked.webhook.service.precedence.running(no_deadline, "calm"):
            worst = asyncio.ensure_future(asked.mutate(job_set(50)))
            worked = True
            while worked:
                began = time.process_time()
                await asyncio.sleep(IDLE)
                worked = time.process_time() - began > IDLE / 20
            assert not worst.done()
        assert (await worst)["uid"]
