"""What an expression may cost. No clock: the same expression on the same object always costs the same.

A unit is about one step of the expression: each iteration of a macro costs the size of its body, strings and
lists cost a tenth of their length when they are built or searched, a regular expression its length times that
of its input. Both defaults are Kubernetes' (k8s.io/apiserver/pkg/apis/cel/config.go): 1,000,000 units an
expression (PerCallLimit, about 0.1 s there) and 10,000,000 units a policy set (RuntimeCELCostBudget).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from webhook.cel.values.errors import CelError

EXPRESSION_LIMIT: Final = 1_000_000


REQUEST_LIMIT: Final = 10_000_000


POLL_EVERY: Final = 20_000
"""Units between two looks at the deadline, some milliseconds."""


Results = dict[tuple[object, ...], tuple[list[Any], Any]]
"""Results of calls by function and the identity of the arguments, which are kept alive so that each identity
stays unique."""


class Meter:
    """What one evaluation has left. Closures take from `left` themselves, for speed, and call `stop`.

    With a `poll` it is given out in tranches, so that the deadline is asked for without a cost to each step.
    """

    __slots__ = ("_kept", "_poll", "_results", "left", "limit")

    def __init__(
        self, limit: int, poll: Callable[[], None] | None = None, results: Results | None = None
    ) -> None:
        self.limit = limit
        self.left = limit if poll is None or limit < POLL_EVERY else POLL_EVERY
        self._kept = limit - self.left
        self._poll = poll
        self._results = {} if results is None else results

    def remember(self, call: Callable[..., Any], values: list[Any]) -> Any:
        """Returns the result of a call; that of a former call with the same values, if there was one.

        Raises whatever `call` raises.
        """
        key = call, *map(id, values)
        if key not in self._results:
            self._results[key] = values, call(*values)
        return self._results[key][1]

    def charge(self, units: int) -> None:
        """Take units away; a CelError of kind "budget" when none are left."""
        self.left -= units
        if self.left < 0:
            self.stop()

    def stop(self) -> None:
        """The next tranche, or the end of the evaluation. Raises whatever `poll` raises."""
        if self._poll is not None and self._kept:
            self._poll()
            tranche = min(self._kept, POLL_EVERY - self.left)
            self.left += tranche
            self._kept -= tranche
        if self.left < 0:
            raise CelError("budget", f"cost limit of {self.limit:,} units exceeded")

    @property
    def used(self) -> int:
        """Units used, at most all."""
        return min(self.limit, self.limit - self.left - self._kept)


class CostBudget:
    """The units that the expressions of one request share, and the cap on each of them; and the results of
    functions that they share.

    `poll` is called before the first evaluation and now and then, before one and within; what it raises ends
    the evaluation.
    """

    __slots__ = ("_polled", "_results", "expression_limit", "left", "limit", "poll")

    def __init__(
        self,
        limit: int = REQUEST_LIMIT,
        expression_limit: int = EXPRESSION_LIMIT,
        poll: Callable[[], None] | None = None,
    ) -> None:
        self.limit = limit
        self.left = limit
        self.expression_limit = expression_limit
        self.poll = poll
        self._polled = limit + POLL_EVERY
        self._results: Results = {}

    def open(self) -> Meter:
        """A meter for one evaluation."""
        left = self.left
        # Of some two hundred evaluations in a decision nearly all cost a few units.
        if self.poll is not None and self._polled - left >= POLL_EVERY:
            self.poll()
            self._polled = left
        if left <= 0:
            raise CelError("budget", f"the request's cost limit of {self.limit:,} units is used up")
        units = left if left < self.expression_limit else self.expression_limit
        return Meter(units, self.poll, self._results)

    def beside(self, limit: int) -> CostBudget:
        """Returns another budget of this many units that shares the results of functions with this one."""
        other = CostBudget(limit, self.expression_limit, self.poll)
        other._results = self._results
        return other

    def close(self, meter: Meter) -> None:
        """Book what an evaluation used."""
        used = meter.limit - meter.left - meter._kept
        self.left -= used if used < meter.limit else meter.limit

    @property
    def used(self) -> int:
        """Units used so far."""
        return self.limit - self.left
