"""CEL device selectors (`resource.k8s.io` CELDeviceSelector), with the variables and limits of Kubernetes'
scheduler.

The variable `device` has `driver`, `attributes` and `capacity` by domain and name, and
`allowMultipleAllocations`. Capacities are quantities, version attributes semantic versions. A domain that the
device does not have is an empty map, an attribute that it does not have is an error. If an expression ends in
an error, the device does not match here, and the plan warns; the scheduler ends the allocation for the whole
pod if it comes to such a device.

The planner may not know whether a device has an attribute: it knows all attributes only if `Device.complete`
is set, except for those in `SINGLE` (such as a serial number), which it never knows. If the expression's
value depends on an attribute that is not known, the result is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, NoReturn

from planner.cluster.snapshot import Snapshot
from planner.devices.device import SINGLE, Device, Value, Version, own_name
from planner.devices.selectors import Selector
from planner.manifests.cluster import read
from planner.model.effort.deadline import poll
from webhook.cel import CelError, CostBudget, Declarations, Program, compile
from webhook.cel.libraries import quantity, semver
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.schema import SchemaNode

MAX_EXPRESSION: Final = 10 * 1024
"""Maximum length of a selector; the API server refuses longer ones (CELSelectorExpressionMaxLength)."""

MAX_COST: Final = 1_000_000
"""Maximum cost of one evaluation, in CEL cost units: the API's CELSelectorExpressionMaxCost."""

_BY_DOMAIN: Final = SchemaNode("map", items=SchemaNode("map", items=SchemaNode("any")))

_DEVICE: Final = SchemaNode(
    "object",
    {
        "driver": SchemaNode("string"),
        "attributes": _BY_DOMAIN,
        "capacity": _BY_DOMAIN,
        "allowMultipleAllocations": SchemaNode("boolean"),
    },
)


def _poll() -> None:
    poll("search")


_DECLARED: Final = Declarations({"device": _DEVICE}, libraries=frozenset({"bind"}), poll=_poll)

CelValue = str | int | bool | quantity.Quantity | semver.Semver


class CelSelectors:
    """Implements `SelectorEngine`, through which the planner evaluates device selectors."""

    def compile(self, expression: str) -> Selector:
        """Returns the selector of an expression; its result is None for every device if the expression does
        not compile.
        """
        return _compiled(expression)

    def error(self, expression: str, device: Device) -> str:
        """Returns the error in which the evaluation for the device ends; "" if it has a result, or if that
        depends on a value that is not known.
        """
        selector = _compiled(expression)
        return selector.error(device) if isinstance(selector, _Selector) else ""


DEVICE_SELECTORS: Final = CelSelectors()
"""The one engine of this process: the planner caches results by engine."""


def read_cluster(documents: Iterable[tuple[str, object]]) -> Snapshot:
    """Returns the cluster in these documents, with device selectors evaluated by this engine. Raises
    `InputError`.
    """
    return read(documents, DEVICE_SELECTORS)


# A cluster has a few dozen expressions, but anybody who may write a claim can add one: hence the bound.
@lru_cache(maxsize=1024)
def _compiled(expression: str) -> Selector:
    if len(expression) > MAX_EXPRESSION:
        return _unknown
    try:
        program = compile(expression, _DECLARED)
    except CelError:
        return _unknown
    return _Selector(program) if program.result_type in ("bool", "dyn") else _unknown


def _unknown(_: Device) -> None:
    return None


@dataclass(frozen=True, slots=True)
class _Selector:
    """A compiled selector."""

    program: Program

    def __call__(self, device: Device) -> bool | None:
        """Returns whether the device matches; None if that is unknown (see `_outcome`)."""
        outcome = self._outcome(device)
        return False if isinstance(outcome, str) else outcome

    def error(self, device: Device) -> str:
        """See `CelSelectors.error`."""
        outcome = self._outcome(device)
        return outcome if isinstance(outcome, str) else ""

    def _outcome(self, device: Device) -> bool | str | None:
        """Returns whether the device matches, or the error in which the evaluation ends; None if this depends
        on a value that is not known, or if the evaluation exceeds the cost limit.
        """
        lookups = _Lookups(device)
        # A claim may have a thousand selectors, of which each takes up to 30 ms for a device: hence `_poll`.
        budget = CostBudget(MAX_COST, MAX_COST, _poll)
        try:
            value = self.program.evaluate({"device": lookups.variable()}, budget)
        except CelError as error:
            return None if lookups.unknown or error.kind == "budget" else error.message
        return value is True


class _Lookups:
    """A device as one evaluation sees it. `unknown`: the evaluation has read a value that is not known."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.unknown = False

    def variable(self) -> dict[str, object]:
        """Returns the value of the CEL variable `device`."""
        capacity = {name: quantity.Quantity.of_amount(Fraction(size)) for name, size in self.device.capacity}
        return {
            "driver": self.device.driver,
            "attributes": _Domains(self, dict(self.device.attributes)),
            "capacity": _Domains(self, capacity),
            "allowMultipleAllocations": self.device.shareable,
        }

    def fail(self) -> NoReturn:
        """Raises CelError for an operand whose value is not known; the other operand of `||` or `&&` may
        still decide.
        """
        self.unknown = True
        raise CelError("evaluation", "not known of this device")


class _Domains(Mapping[str, "_DomainValues"]):
    """Attributes or capacities by domain; a missing domain is an empty map."""

    def __init__(self, lookups: _Lookups, values: Mapping[str, Value | quantity.Quantity]) -> None:
        self._lookups = lookups
        self._values = values

    def __getitem__(self, domain: str) -> _DomainValues:
        return _DomainValues(self._lookups, self._values, domain)

    def __contains__(self, domain: object) -> bool:
        driver = self._lookups.device.driver
        if any((name.rpartition("/")[0] or driver) == domain for name in self._values):
            return True
        return False if self._lookups.device.complete else self._lookups.fail()

    # A complete list is not known even for a complete device: `Device` has none of the attributes that only
    # tell equal devices apart (`SINGLE`), such as a serial number.
    def __iter__(self) -> Iterator[str]:
        self._lookups.fail()

    def __len__(self) -> int:
        self._lookups.fail()


class _DomainValues(Mapping[str, CelValue]):
    """The attributes or capacities of a device whose qualified names (DOMAIN/NAME) have this domain, by
    name."""

    def __init__(
        self, lookups: _Lookups, values: Mapping[str, Value | quantity.Quantity], domain: str
    ) -> None:
        self._lookups = lookups
        self._values = values
        self._domain = domain

    def __getitem__(self, name: str) -> CelValue:
        if name not in self:
            raise KeyError(name)
        value = self._values[self._own(name)]
        if not isinstance(value, Version):
            return value
        try:
            return semver.parse(value.text)
        except FunctionError:
            self._lookups.fail()

    def __contains__(self, name: object) -> bool:
        if self._own(name) in self._values:
            return True
        return False if self._lookups.device.complete and name not in SINGLE else self._lookups.fail()

    def __iter__(self) -> Iterator[str]:
        self._lookups.fail()

    def __len__(self) -> int:
        self._lookups.fail()

    def _own(self, name: object) -> str:
        """Returns the name as in `Device`: without the driver's own domain."""
        return own_name(f"{self._domain}/{name}", self._lookups.device.driver)
