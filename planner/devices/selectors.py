"""Decides whether a device meets a CEL selector of a request or DeviceClass.

Source: `resource.k8s.io` CELDeviceSelector. The planner contains no CEL; the caller that reads a cluster
passes an engine (`webhook.policy.engine.device_selectors`). The result is True, False, or None if it is
unknown: the expression does not compile, exceeds the cost limit, or reads an attribute that is not known. An
unknown result counts as a match, and the plan warns about it. Without an engine every result is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from planner.devices.device import Device

Selector = Callable[[Device], bool | None]
"""Reports whether a device meets an expression; None if that is unknown."""


class SelectorEngine(Protocol):
    """Evaluates device selectors. Results are cached by engine, so an engine must be hashable and
    long-lived.
    """

    def __hash__(self) -> int: ...

    def compile(self, expression: str) -> Selector:
        """Returns the compiled selector. Never raises: the selector of an invalid expression returns None."""
        ...

    def error(self, expression: str, device: Device) -> str:
        """Returns the error in which the evaluation for the device ends; "" if it has a result."""
        ...


@lru_cache(maxsize=65_536)  # an entry for each expression and distinct device; equal devices share one
def meets_selector(engine: SelectorEngine | None, expression: str, device: Device) -> bool | None:
    """Reports whether the device meets the expression; None if that is unknown."""
    return None if engine is None else engine.compile(expression)(device)


@lru_cache(maxsize=65_536)  # as above; only for expressions that did not hold
def selector_error(engine: SelectorEngine, expression: str, device: Device) -> str:
    """Returns the error in which the expression ends for the device; "" if there is none. Kubernetes'
    scheduler then allocates nothing to the pod, if it comes to the device before it has found enough others
    (k8s.io/dynamic-resource-allocation, structured allocator, `selectorsMatch`)."""
    return engine.error(expression, device)
