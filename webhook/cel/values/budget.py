"""What an expression may cost. No clock: the same expression on the same object always costs the same.

A unit is about one step of the expression: each iteration of a macro costs the size of its body, strings and
lists cost a tenth of their length when they are built or searched, a regular expression its length times that
of its input. Both defaults are Kubernetes' (k8s.io/apiserver/pkg/apis/cel/config.go): 1,000,000 units an
expression (PerCallLimit, about 0.1 s there) and 10,000,000 units a policy set (RuntimeCELCostBudget).
"""

from __future__ import annotations

from typing import Final

from webhook.cel.values.errors import CelError

EXPRESSION_LIMIT: Final = 1_000_000


REQUEST_LIMIT: Final = 10_000_000


class Meter:
    """What one evaluation has left. Closures take from `left` themselves, for speed, and call `stop`."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def charge(self, units: int) -> None:
        """Take units away; a CelError of kind "budget" when none are left."""
        self.left -= units
        if self.left < 0:
            self.stop()

    def stop(self) -> None:
        """End the evaluation."""
        raise CelError("budget", f"cost limit of {self.limit:,} units exceeded")


class CostBudget:
    """The units that the expressions of one request share, and the cap on each of them."""

    __slots__ = ("expression_limit", "left", "limit")

    def __init__(self, limit: int = REQUEST_LIMIT, expression_limit: int = EXPRESSION_LIMIT) -> None:
        self.limit = limit
        self.left = limit
        self.expression_limit = expression_limit

    def open(self) -> Meter:
        """A meter for one evaluation."""
        if self.left <= 0:
            raise CelError("budget", f"the request's cost limit of {self.limit:,} units is used up")
        return Meter(min(self.left, self.expression_limit))

    def close(self, meter: Meter) -> None:
        """Book what an evaluation used."""
        self.left -= min(meter.limit, meter.limit - meter.left)

    @property
    def used(self) -> int:
        """Units used so far."""
        return self.limit - self.left
