"""Chooses the next call, so that a flood of calls from one user does not delay other users. Pure: no clock,
no threads.

The model is API Priority and Fairness of Kubernetes. A call waits in a *queue* until it gets a *permit* (a
seat there), the right to be decided. Each *flow* (a user in a namespace) has a *hand*, a few queues that a
hash of its name selects, and gets a *turn* in the shortest of them for each of its calls (shuffle sharding).
So a flow that fills its whole hand leaves nearly every other flow a queue with room. The next turn is that of
the queue that has received the least work so far, measured by the seconds that its calls took (start-time
fair queuing). If there are several permits, no flow gets all: the last one stays free for other flows, which
then need not wait until a decision has ended.

A turn belongs to a flow, and not to the call for which it was given: the oldest waiting call of the flow
takes it. Otherwise a call would wait longer because its queue happened to have the flow's longer calls, and
of 512 pods from 32 clients the slowest percent took 1.7 times as long as the median.

Example with two permits: `a` sends 100 calls of a second each, then `b` one of 10 ms. One call of `a` runs,
99 wait; the call of `b` takes the other permit at once.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, TypeVar

QUEUES, HAND = 64, 6
"""The number of queues, and of queues in a hand. Two flows have the same hand with a probability of 1 in 75
million. Some default priority levels of Kubernetes have the same `handSize`.
"""
LENGTH = 50
"""The maximum number of waiting calls in one queue, so 300 for a flow: more than can be decided before their
deadline.
"""
ESTIMATE = 0.02
"""The seconds that a call counts for until it has ended: those of a decision on an ordinary pod."""

T = TypeVar("T")


@dataclass(slots=True)
class _Queue:
    """A queue of turns, each with the name of the flow that has it. `start`: the queue's virtual time, the
    sum of the seconds that its calls took. When a call comes to an idle queue, `start` is raised to the level
    of the queues that are being served, so that it gains no advance by having been idle. `running`: the
    number of its calls that have a permit.
    """

    turns: deque[str] = field(default_factory=deque)
    start: float = 0.0
    running: int = 0


@dataclass(slots=True, eq=False)
class Ticket(Generic[T]):
    """A call that waits or has a permit. `flow`: the name of its flow. `call`: the value given to
    `FairQueue.put`. `queue`: the number of the queue of its turn, which `FairQueue.take` may exchange with
    that of another call of the flow.
    """

    flow: str
    call: T
    queue: int


class FairQueue(Generic[T]):
    """The calls that wait for one of `permits` permits, and the calls that have one. Calls of one flow get
    theirs in the order in which they came.

    `queues`, `hand`, `length`: see `QUEUES`, `HAND` and `LENGTH`.
    """

    def __init__(self, permits: int, queues: int = QUEUES, hand: int = HAND, length: int = LENGTH) -> None:
        self._permits, self._hand, self._length = permits, hand, length
        self._queues = [_Queue() for _ in range(queues)]
        self._waiting: dict[str, deque[Ticket[T]]] = {}
        """The waiting calls of each flow, the oldest first."""
        self._running: Counter[str] = Counter()
        self._now = 0.0

    def put(self, flow: str, call: T) -> Ticket[T] | None:
        """Adds a call, with a turn in the queue of its flow's hand that has the fewest waiting and running
        calls, among those with room, and returns its ticket; None if the whole hand is full.
        """
        numbers = hand_of(flow, len(self._queues), self._hand)
        with_room = [number for number in numbers if len(self._queues[number].turns) < self._length]
        if not with_room:
            return None
        number = min(with_room, key=self._load)
        queue = self._queues[number]
        if not queue.turns and not queue.running:
            queue.start = max(queue.start, self._now)
        ticket = Ticket(flow, call, number)
        queue.turns.append(flow)
        self._waiting.setdefault(flow, deque()).append(ticket)
        return ticket

    def take(self) -> Ticket[T] | None:
        """Gives a free permit to the next call and returns its ticket; None if no waiting call may have
        one.
        """
        if self._running.total() >= self._permits:
            return None
        ready = [number for number in range(len(self._queues)) if self._is_ready(number)]
        if not ready:
            return None
        number = min(ready, key=lambda number: (self._queues[number].start, number))
        queue = self._queues[number]
        ticket = self._oldest(queue.turns.popleft(), number)
        self._now = max(self._now, queue.start)
        queue.start += ESTIMATE
        queue.running += 1
        self._running[ticket.flow] += 1
        return ticket

    def _oldest(self, flow: str, number: int) -> Ticket[T]:
        """Removes the oldest waiting call of the flow, which takes the flow's turn in queue `number`. The
        call for which this turn was added gets the turn of the oldest call."""
        waiting = self._waiting[flow]
        oldest, turn_holder = waiting[0], next(ticket for ticket in waiting if ticket.queue == number)
        turn_holder.queue, oldest.queue = oldest.queue, number
        self._remove(oldest)
        return oldest

    def end(self, ticket: Ticket[T], seconds: float) -> None:
        """Records that a call has given back its permit after `seconds` of work."""
        queue = self._queues[ticket.queue]
        queue.start += seconds - ESTIMATE
        queue.running -= 1
        self._running[ticket.flow] -= 1
        if not self._running[ticket.flow]:
            del self._running[ticket.flow]

    def leave(self, ticket: Ticket[T]) -> bool:
        """Removes a waiting call and its flow's last turn in its queue, and returns True; False if the call
        already has, or had, a permit."""
        if ticket not in self._waiting.get(ticket.flow, ()):
            return False
        self._remove(ticket)
        turns = self._queues[ticket.queue].turns
        del turns[max(place for place, flow in enumerate(turns) if flow == ticket.flow)]
        return True

    def _remove(self, ticket: Ticket[T]) -> None:
        waiting = self._waiting[ticket.flow]
        waiting.remove(ticket)
        if not waiting:
            del self._waiting[ticket.flow]

    def __len__(self) -> int:
        """Returns the number of waiting calls."""
        return sum(len(queue.turns) for queue in self._queues)

    def _load(self, number: int) -> int:
        return len(self._queues[number].turns) + self._queues[number].running

    def _is_ready(self, number: int) -> bool:
        turns = self._queues[number].turns
        return bool(turns) and self._running[turns[0]] < max(1, self._permits - 1)


@lru_cache(maxsize=4096)
def hand_of(flow: str, queues: int = QUEUES, hand: int = HAND) -> tuple[int, ...]:
    """Returns the hand of a flow: the numbers of `hand` distinct queues, the same at each call."""
    return tuple(
        _dealt(int.from_bytes(hashlib.sha256(flow.encode("utf-8", "surrogatepass")).digest()), queues, hand)
    )


def _dealt(entropy: int, queues: int, hand: int) -> Iterator[int]:
    left = list(range(queues))
    for _ in range(min(hand, queues)):
        entropy, place = divmod(entropy, len(left))
        yield left.pop(place)
