"""quantity(): Kubernetes' resource quantities, such as `500m`, `2Gi` and `1e3`, as exact fractions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from webhook.cel.compiler.functions import Overload, overload, scanning
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import INT_MAX, INT_MIN, register_type

_FORM: Final = re.compile(
    r"([+-]?)(\d{1,64}(?:\.\d{0,64})?|\.\d{1,64})(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,3}))?", re.ASCII
)
_BINARY: Final = {unit + "i": 1024 ** (power + 1) for power, unit in enumerate("KMGTPE")}
_EXPONENTS: Final = {
    unit: 3 * power for power, unit in zip(range(-3, 7), ("n", "u", "m", "", *"kMGTPE"), strict=True)
}
_DECIMAL: Final = {unit: Fraction(10) ** exponent for unit, exponent in _EXPONENTS.items()}
_NANO: Final = 10**9
_DECIMAL_UNITS: Final = ("m", "", *"kMGTPE")
_EXPONENT_UNITS: Final = ("e-3", "", *(f"e{power}" for power in range(3, 19, 3)))
_INT64_DIGITS: Final = 18
_LONGEST: Final = 160
"""No quantity is longer: a sign, 64 digits on each side of the point, and a unit."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity: a multiple of 1e-9, the smallest unit (`n`) of Kubernetes."""

    amount: Fraction


register_type(Quantity, "kubernetes.Quantity")


def parse(text: str) -> Quantity:
    """Returns the quantity of a text, rounded away from zero to a multiple of 1e-9, as Kubernetes does.

    Raises FunctionError for a malformed quantity.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise FunctionError("quantity() needs a form such as '500m' or '2Gi'")
    sign, digits, binary, decimal, exponent = match.groups()
    amount = Fraction(digits if not digits.endswith(".") else digits[:-1])
    if binary:
        amount *= _BINARY[binary]
    elif decimal:
        amount *= _DECIMAL[decimal]
    elif exponent:
        amount *= Fraction(10) ** int(exponent)
    amount = Fraction(math.ceil(amount * _NANO), _NANO)
    return Quantity(-amount if sign == "-" else amount)


def canonical(text: str) -> str:
    """Returns the text that the API server writes for an amount of a resource: `1.5` as `1500m`, `1024Mi` as
    `1Gi`, `0.1m` as `1m`, for it rounds up to thousandths (apimachinery pkg/api/resource/quantity.go,
    `SetDefaults_ResourceList`). A malformed quantity is returned unchanged, and so is a text that the API
    server takes for canonical: `1.125` has a multiple of three decimals.
    """
    return _canonical(text) if len(text) <= _LONGEST else text


# The same few amounts are in each pod. Anybody may write others: hence the bound, and that of their length.
@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    stripped = text.strip()
    match = _FORM.fullmatch(stripped)
    if match is None:
        return text
    _, digits, binary, unit, exponent = match.groups()
    power = _EXPONENTS[unit] if unit else int(exponent or 0)
    whole, _, decimals = digits.partition(".")
    shifted, scale = (whole.lstrip("0") or "0") + decimals, power - len(decimals)
    plain = not binary and len(shifted) <= _INT64_DIGITS and scale >= -3 and scale % 3 == 0
    if plain and not shifted.startswith("0") and not shifted.endswith("000"):
        return stripped
    amount = parse(stripped).amount
    amount = min(amount, Fraction(INT_MAX)) if binary else amount
    thousandths = math.ceil(abs(amount) * 1000) * (-1 if amount < 0 else 1)
    if binary and not thousandths % 1000 and abs(thousandths) >= 1024_000:
        return _in_units(thousandths // 1000, 1024, ("", *_BINARY))
    return _in_units(thousandths, 1000, _EXPONENT_UNITS if exponent else _DECIMAL_UNITS)


def _in_units(count: int, base: int, units: Sequence[str]) -> str:
    """Returns the count in the largest unit of which it is a multiple; the first unit is that of the count,
    and each is `base` times the one before."""
    place = 0
    while count and not count % base and place < len(units) - 1:
        count, place = count // base, place + 1
    return f"{count}{units[place]}" if count else "0"


def _is(text: str) -> bool:
    return _FORM.fullmatch(text) is not None


def _is_integer(quantity: Quantity) -> bool:
    return quantity.amount.denominator == 1 and INT_MIN <= quantity.amount <= INT_MAX


def _as_integer(quantity: Quantity) -> int:
    if not _is_integer(quantity):
        raise FunctionError("quantity is no integer of 64 bits")
    return quantity.amount.numerator


def _amount(value: Any) -> Fraction:
    return value.amount if isinstance(value, Quantity) else Fraction(value)


def _compare(a: Quantity, b: Quantity) -> int:
    return (a.amount > b.amount) - (a.amount < b.amount)


def _sign(quantity: Quantity) -> int:
    return (quantity.amount > 0) - (quantity.amount < 0)


_Q: Final = "kubernetes.Quantity"
OVERLOADS: Final[tuple[Overload, ...]] = (
    scanning(f"quantity(string) -> {_Q}", parse, flat=40),
    scanning("isQuantity(string) -> bool", _is),
    overload(f"<{_Q}>.sign() -> int", _sign),
    overload(f"<{_Q}>.isInteger() -> bool", _is_integer),
    overload(f"<{_Q}>.asInteger() -> int", _as_integer),
    overload(f"<{_Q}>.asApproximateFloat() -> double", lambda q: float(q.amount)),
    overload(f"<{_Q}>.add({_Q}|int) -> {_Q}", lambda a, b: Quantity(a.amount + _amount(b))),
    overload(f"<{_Q}>.sub({_Q}|int) -> {_Q}", lambda a, b: Quantity(a.amount - _amount(b))),
    overload(f"<{_Q}>.isGreaterThan({_Q}) -> bool", lambda a, b: a.amount > b.amount),
    overload(f"<{_Q}>.isLessThan({_Q}) -> bool", lambda a, b: a.amount < b.amount),
    overload(f"<{_Q}>.compareTo({_Q}) -> int", _compare),
)
