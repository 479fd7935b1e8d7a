"""Whether a device meets a selector of a request or class: CEL, evaluated by an engine passed in.

Source: `resource.k8s.io` CELDeviceSelector. The planner has no CEL of its own; the caller that reads a
cluster passes an engine (`webhook.policy.engine.device_selectors`). The result is True, False, or None where
it is unknown: the expression does not compile, costs too much, or reads what is not known of the device. An
unknown result counts as a match, and the plan warns about it. Without an engine every result is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from planner.devices.device import Device

Selector = Callable[[Device], bool | None]
"""Whether a device meets an expression; None where it cannot be told."""


class SelectorEngine(Protocol):
    """Evaluates device selectors. Results are cached by engine, so an engine is hashable and long-lived."""

    def __hash__(self) -> int: ...

    def compile(self, expression: str) -> Selector:
        """The compiled selector of an expression. Never raises: an invalid one evaluates to None."""
        ...


@lru_cache(maxsize=65_536)  # expressions times kinds of devices; equal devices of all nodes are one kind
def meets_selector(engine: SelectorEngine | None, expression: str, device: Device) -> bool | None:
    """Whether the device meets the expression; None where that is unknown."""
    return None if engine is None else engine.compile(expression)(device)
