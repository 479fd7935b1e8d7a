"""Whether a device meets a selector of a request or class: CEL, evaluated by an engine that is handed in.

Source: `resource.k8s.io` CELDeviceSelector. The planner has no CEL of its own; whoever reads a cluster gives
it an engine (`webhook.functions.device_selectors`). An answer has three values: True, False, and None
where it cannot be told, because the expression does not compile, costs too much, or asks for what is not
known of the device. What cannot be told is taken to hold, and the plan says so. Without an engine nothing can
be told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from planner.devices.device import Device

Selector = Callable[[Device], bool | None]
"""Whether a device meets an expression; None where it cannot be told."""


class SelectorEngine(Protocol):
    """What evaluates device selectors. Answers are remembered by engine, so it is hashable and lasts."""

    def __hash__(self) -> int: ...

    def compile(self, expression: str) -> Selector:
        """The selector of an expression. Never raises: of one that is unsound nothing can be told."""
        ...


@lru_cache(maxsize=65_536)  # expressions times kinds of devices; equal devices of all nodes are one kind
def meets_selector(engine: SelectorEngine | None, expression: str, device: Device) -> bool | None:
    """Whether the device meets the expression; None where that cannot be told."""
    return None if engine is None else engine.compile(expression)(device)
