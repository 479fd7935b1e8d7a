"""Whose call is decided next: invariants of the queue, and what a storm does to others."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from webhook.server.fair_queue import HAND, QUEUES, FairQueue, Ticket, hand_of
from webhook.server.permits import Crowded, Permits

SOON = 60.0
"""Seconds: more than any machine needs."""
FLOWS = st.sampled_from(["ann in a", "bob in a", "ann in b", "eve in c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), FLOWS),
        st.tuples(st.just("end"), st.floats(0, 5)),
        st.tuples(st.just("leave"), st.integers(0, 10)),
    ),
    max_size=60,
)


@given(STEPS, st.integers(1, 4), st.integers(1, 8), st.integers(1, 3))
def test_each_call_has_its_seat_once_and_no_seat_stays_free_without_need(
    steps: list[tuple[str, object]], permits: int, queues: int, length: int
) -> None:
    """Whatever comes, ends and leaves: at most `permits` run, nothing is lost or served twice, no queue is
    longer than it may be, a flow's calls start in the order in which they came, each in a turn of the flow,
    and of several permits one is kept from the flow that has the others."""
    queue: FairQueue[int] = FairQueue(permits, queues, 2, length)
    waiting: list[Ticket[int]] = []
    running: list[Ticket[int]] = []
    turns: list[tuple[str, int]] = []
    number = 0
    for step, value in steps:
        if step == "put":
            number += 1
            ticket = queue.put(str(value), number)
            if ticket is not None:
                waiting.append(ticket)
                turns.append((ticket.flow, ticket.queue))
        elif step == "end" and running:
            queue.end(running.pop(0), float(str(value)))
        elif step == "leave" and waiting:
            ticket = waiting.pop(int(str(value)) % len(waiting))
            assert queue.leave(ticket)
            last = max(place for place, turn in enumerate(turns) if turn == (ticket.flow, ticket.queue))
            del turns[last]
        while (started := queue.take()) is not None:
            assert started == next(ticket for ticket in waiting if ticket.flow == started.flow)
            waiting.remove(started)
            first = next(turn for turn in turns if turn[1] == started.queue)
            assert first[0] == started.flow
            turns.remove(first)
            assert not queue.leave(started)
            running.append(started)
        assert len(queue) == len(waiting)
        assert len(running) <= permits
        by_flow = Counter(ticket.flow for ticket in running)
        assert all(count <= max(1, permits - 1) for count in by_flow.values())
        assert sorted(turns) == sorted((ticket.flow, ticket.queue) for ticket in waiting)
        assert all(count <= length for count in Counter(number for _, number in turns).values())
        if len(running) < permits:  # whoever waits has its share of the permits, or stands behind one who has
            full = {flow for flow, count in by_flow.items() if count >= max(1, permits - 1)}
            heads = {number: flow for flow, number in reversed(turns)}
            assert all(flow in full for flow in heads.values())


def test_a_call_is_refused_only_when_its_whole_hand_is_full() -> None:
    """A queue with three running calls and no waiting one has room, though the other has fewer calls."""
    queue: FairQueue[int] = FairQueue(4, queues=2, hand=2, length=1)
    running = []
    for number in range(3):
        queue.put("eve in c", number)
        running.append(queue.take())
    assert queue.put("eve in c", 3)
    assert queue.put("eve in c", 4)
    _, alone, _ = running
    assert alone is not None
    queue.end(alone, 60)  # the only running call of its queue; the next is taken from the other one
    assert queue.take()
    assert queue.put("eve in c", 5)
    assert not queue.put("eve in c", 6)


@given(st.integers(1, 200), st.floats(0.1, 60), st.integers(2, 4))
def test_a_call_of_another_flow_is_next_however_large_the_storm(
    count: int, cost: float, permits: int
) -> None:
    """It gets a permit before hundreds of expensive calls of one flow."""
    queue: FairQueue[str] = FairQueue(permits)
    for _ in range(count):
        queue.put("eve in c", "heavy")
    for _ in range(3):
        heavy = queue.take()
        if heavy is not None:
            queue.end(heavy, cost)
    while queue.take() is not None:
        pass
    queue.put("ann in a", "light")
    started = queue.take()
    assert started is not None
    assert started.call == "light"


def test_flows_get_alike_work_where_all_of_them_wait() -> None:
    """Calls of 1 s and of 0.1 s: the seconds given are alike, not the number of calls."""
    queue: FairQueue[float] = FairQueue(2, 64, 1, 10_000)
    for _ in range(400):
        queue.put("eve in c", 1.0)
        queue.put("ann in a", 0.1)
        queue.put("bob in b", 0.1)
    work: Counter[str] = Counter()
    running: list[Ticket[float]] = []
    while sum(work.values()) < 60:
        while (started := queue.take()) is not None:
            running.append(started)
        ended = min(running, key=lambda ticket: ticket.call)
        running.remove(ended)
        queue.end(ended, ended.call)
        work[ended.flow] += ended.call  # type: ignore[assignment]
    assert max(work.values()) < 1.25 * min(work.values())


def test_hardly_any_flow_has_all_its_queues_in_common_with_another() -> None:
    """Hands are dealt without repetition, the same each time; of 20,000 flows none shares a storm's."""
    storm = set(hand_of("eve in c"))
    hands = [hand_of(f"user-{number} in team") for number in range(20_000)]
    assert all(len(set(hand)) == HAND and max(hand) < QUEUES for hand in hands)
    assert not [hand for hand in hands if set(hand) <= storm]
    assert len({queue for hand in hands for queue in hand}) == QUEUES


async def test_a_storm_leaves_a_thread_to_others_and_is_told_so() -> None:
    """Two threads, and a user whose call holds a thread until the others are through: another's calls are
    decided meanwhile, and the last of the storm hear that too many wait."""
    permits, calm = Permits(2), threading.Event()
    with ThreadPoolExecutor(2) as threads:

        async def call(flow: str, work: Callable[[], object], seconds: float) -> object:
            turn = await permits.submit(threads, flow, work, time.monotonic() + seconds)
            return await asyncio.wrap_future(turn)

        storm = [asyncio.create_task(call("eve in c", lambda: calm.wait(SOON), SOON)) for _ in range(5)]
        late = [asyncio.create_task(call("eve in c", lambda: True, 0.5)) for _ in range(5)]
        await asyncio.sleep(0.02)
        others = [await call("ann in a", calm.is_set, SOON) for _ in range(5)]
        crowded = await asyncio.gather(*late, return_exceptions=True)
        calm.set()
        outcomes = await asyncio.gather(*storm)
    assert others == [False] * 5
    assert all(isinstance(outcome, Crowded) for outcome in crowded)
    assert outcomes == [True] * 5


async def test_a_caller_that_hangs_up_gives_its_turn_to_the_next() -> None:
    """In the queue and at work alike: the permit is free when the work has ended."""
    permits = Permits(1)
    with ThreadPoolExecutor(1) as threads:
        first = await permits.submit(threads, "a", lambda: time.sleep(0.1))
        gone = asyncio.create_task(permits.submit(threads, "b", lambda: 1))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.wait([gone])
        assert (await asyncio.wrap_future(await permits.submit(threads, "c", lambda: 2))) == 2
        assert first.done()
