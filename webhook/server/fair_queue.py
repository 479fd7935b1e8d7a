"""Whose call is decided next: nobody's storm keeps the others waiting. Pure: no clock, no threads.

The model is Kubernetes' API Priority and Fairness. Calls of one flow (a user in a namespace) are dealt a hand
of queues, and each waits in the shortest of them (shuffle sharding): a flow that fills its own hand leaves
nearly every other flow a queue without it. The queue that has been given least work so far is served first,
by the seconds that its calls really took (start-time fair queuing), and of all seats one is never taken by
the flow that has the others: who comes meanwhile need not wait until a decision of it has ended.

Example, two seats: `a` sends 100 calls of a second each, then `b` one of 10 ms. One call of `a` runs, 99
wait; the call of `b` takes the other seat at once.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, TypeVar

QUEUES, HAND = 64, 6
"""As in Kubernetes' default levels: of one flow in 75 million the whole hand is another's."""
LENGTH = 50
"""Calls that wait in one queue at most: 300 of a flow, more than are decided before their deadline."""
ESTIMATE = 0.02
"""Seconds that a call is taken for until it has ended: those of an ordinary pod."""

T = TypeVar("T")


@dataclass(slots=True)
class _Queue(Generic[T]):
    """`start`: the virtual second at which its next call begins, ahead of others by the work it was given."""

    waiting: deque[Ticket[T]] = field(default_factory=deque)
    start: float = 0.0
    running: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Ticket(Generic[T]):
    """A call that waits or runs."""

    flow: str
    call: T
    queue: int


class FairQueue(Generic[T]):
    """Calls that wait for one of `seats`, and those that have one."""

    def __init__(self, seats: int, queues: int = QUEUES, hand: int = HAND, length: int = LENGTH) -> None:
        self._seats, self._hand, self._length = seats, hand, length
        self._queues: list[_Queue[T]] = [_Queue() for _ in range(queues)]
        self._running: Counter[str] = Counter()
        self._now = 0.0

    def put(self, flow: str, call: T) -> Ticket[T] | None:
        """The call waits from now on; None where every queue of its flow's hand is full."""
        numbers = hand_of(flow, len(self._queues), self._hand)
        number = min(numbers, key=lambda queue: (self._load(queue), numbers.index(queue)))
        queue = self._queues[number]
        if len(queue.waiting) >= self._length:
            return None
        if not queue.waiting and not queue.running:
            queue.start = max(queue.start, self._now)
        ticket = Ticket(flow, call, number)
        queue.waiting.append(ticket)
        return ticket

    def take(self) -> Ticket[T] | None:
        """The call that gets a free seat now, None where there is none for anybody who waits."""
        if self._running.total() >= self._seats:
            return None
        ready = [number for number in range(len(self._queues)) if self._is_ready(number)]
        if not ready:
            return None
        queue = self._queues[min(ready, key=lambda number: (self._queues[number].start, number))]
        ticket = queue.waiting.popleft()
        self._now = max(self._now, queue.start)
        queue.start += ESTIMATE
        queue.running += 1
        self._running[ticket.flow] += 1
        return ticket

    def end(self, ticket: Ticket[T], seconds: float) -> None:
        """A call that had a seat has left it after so much work."""
        queue = self._queues[ticket.queue]
        queue.start += seconds - ESTIMATE
        queue.running -= 1
        self._running[ticket.flow] -= 1
        if not self._running[ticket.flow]:
            del self._running[ticket.flow]

    def leave(self, ticket: Ticket[T]) -> bool:
        """The call waits no longer; False where it has, or had, its seat."""
        waiting = self._queues[ticket.queue].waiting
        if ticket not in waiting:
            return False
        waiting.remove(ticket)
        return True

    def __len__(self) -> int:
        """How many calls wait."""
        return sum(len(queue.waiting) for queue in self._queues)

    def _load(self, number: int) -> int:
        return len(self._queues[number].waiting) + self._queues[number].running

    def _is_ready(self, number: int) -> bool:
        waiting = self._queues[number].waiting
        return bool(waiting) and self._running[waiting[0].flow] < max(1, self._seats - 1)


@lru_cache(maxsize=4096)
def hand_of(flow: str, queues: int = QUEUES, hand: int = HAND) -> tuple[int, ...]:
    """The queues of a flow: different ones, the same each time."""
    return tuple(
        _dealt(int.from_bytes(hashlib.sha256(flow.encode("utf-8", "surrogatepass")).digest()), queues, hand)
    )


def _dealt(entropy: int, queues: int, hand: int) -> Iterator[int]:
    left = list(range(queues))
    for _ in range(min(hand, queues)):
        entropy, place = divmod(entropy, len(left))
        yield left.pop(place)
