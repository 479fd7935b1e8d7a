"""Cost limits of expressions. Without a clock: the same expression on the same object has the same cost.

A unit is about one step of the expression: each iteration of a macro costs the size of its body; strings and
lists cost a tenth of their length when they are built or searched; a regular expression costs its length
times that of its input. Both defaults are Kubernetes' (k8s.io/apiserver/pkg/apis/cel/config.go): 1,000,000
units per expression (PerCallLimit, about 0.1 s there) and 10,000,000 units per run of a policy
(RuntimeCELCostBudget).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from webhook.cel.values.errors import CelError

EXPRESSION_LIMIT: Final = 1_000_000


RUN_LIMIT: Final = 10_000_000


POLL_EVERY: Final = 20_000
"""Units between two calls of `poll`, which checks the deadline; they take some milliseconds."""


Results = dict[tuple[object, ...], tuple[list[Any], Any]]
"""The arguments and the result of calls, by the function and the identities of its arguments. The arguments
are kept alive so that no other object gets the same `id`.
"""


class Meter:
    """The units of one evaluation. For speed, closures subtract from `left` directly, and call `stop` if it
    is negative.

    With `poll`, `left` gets the units in tranches of `POLL_EVERY` (`_kept`: the units of later tranches), so
    that the deadline is checked without a cost in each step.
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
        """Returns `call(*values)`, or the cached result of an earlier call with the same values (by
        identity).

        Raises any error that `call` raises.
        """
        key = call, *map(id, values)
        if key not in self._results:
            self._results[key] = values, call(*values)
        return self._results[key][1]

    def charge(self, units: int) -> None:
        """Subtracts units. Raises CelError of kind "budget" if none are left."""
        self.left -= units
        if self.left < 0:
            self.stop()

    def check(self) -> None:
        """Calls `poll`, before a step that may take long for the few units that it costs."""
        if self._poll is not None:
            self._poll()

    def stop(self) -> None:
        """Adds the next tranche. Raises CelError of kind "budget" if there is none, and any error
        of `poll`.
        """
        if self._poll is not None and self._kept:
            self._poll()
            tranche = min(self._kept, POLL_EVERY - self.left)
            self.left += tranche
            self._kept -= tranche
        if self.left < 0:
            raise CelError("budget", f"cost limit of {self.limit:,} units exceeded")

    @property
    def used(self) -> int:
        """The units used, at most `limit`."""
        return min(self.limit, self.limit - self.left - self._kept)


class CostBudget:
    """The units that all expressions of one run of a policy share, the limit of each expression, and cached
    results of functions.

    The runs of one request share a budget one after the other: each has all units (`renew`), and finds the
    results of functions that a former run called. `poll` is called before the first evaluation, and then
    about every `POLL_EVERY` units, before or during an evaluation; an error that it raises ends the
    evaluation.
    """

    __slots__ = ("_former", "_polled", "_results", "expression_limit", "left", "limit", "poll")

    def __init__(
        self,
        limit: int = RUN_LIMIT,
        expression_limit: int = EXPRESSION_LIMIT,
        poll: Callable[[], None] | None = None,
    ) -> None:
        self.limit = limit
        self.left = limit
        self.expression_limit = expression_limit
        self.poll = poll
        self._former = 0  # the units of former runs
        self._polled = limit + POLL_EVERY  # the units left at the last poll; so the first `open` polls
        self._results: Results = {}

    def open(self) -> Meter:
        """Returns a meter for one evaluation. Raises CelError of kind "budget" if no units are left."""
        left = self.left
        # Not polled before each evaluation: a decision has about 200 of them, nearly all of a few units.
        if self.poll is not None and self._polled - left >= POLL_EVERY:
            self.poll()
            self._polled = left
        if left <= 0:
            raise CelError("budget", f"the policy's cost limit of {self.limit:,} units is used up")
        units = left if left < self.expression_limit else self.expression_limit
        return Meter(units, self.poll, self._results)

    def separate(self, limit: int) -> CostBudget:
        """Returns another budget of this many units that shares the results of functions with this one."""
        other = CostBudget(limit, self.expression_limit, self.poll)
        other._results = self._results
        return other

    def close(self, meter: Meter) -> None:
        """Subtracts the units that an evaluation used."""
        used = meter.limit - meter.left - meter._kept
        self.left -= used if used < meter.limit else meter.limit

    def charge(self, units: int) -> None:
        """Subtracts the units of a known result. Raises CelError of kind "budget" if they are not left."""
        if units > self.left:
            raise CelError("budget", f"the policy's cost limit of {self.limit:,} units is used up")
        self.left -= units

    def renew(self) -> None:
        """Begins the next run, which has all units."""
        used = self.limit - self.left
        self._polled += used  # units since the last poll count on, whatever run they are of
        self._former += used
        self.left = self.limit

    def add(self, units: int) -> None:
        """Counts the units of a run that had another budget."""
        self._former += units

    def forget(self, used: int) -> None:
        """Begins the next run as if only these units had been used so far."""
        self.renew()
        self._former = used

    @property
    def used(self) -> int:
        """The units that all runs used so far."""
        return self._former + self.limit - self.left
