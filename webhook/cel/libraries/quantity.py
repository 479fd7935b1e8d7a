"""quantity(): Kubernetes' resource quantities, such as `500m`, `2Gi` and `1e3`, as exact fractions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Final, Self

from webhook.cel.compiler.functions import Overload, overload, scanning
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import INT_MAX, INT_MIN, register_type

_FORM: Final = re.compile(
    r"(?!$)([+-]?)(\d{0,64}(?:\.\d{0,64})?)(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,3}))?", re.ASCII
)
"""Kubernetes takes a missing number for zero: `Ki` and `-` are quantities."""
_BINARY: Final = {unit + "i": 1024 ** (power + 1) for power, unit in enumerate("KMGTPE")}
_EXPONENTS: Final = {
    unit: 3 * power for power, unit in zip(range(-3, 7), ("n", "u", "m", "", *"kMGTPE"), strict=True)
}
_NANO: Final = 9
"""The smallest unit of Kubernetes is `n`, 10**-9."""
_DECIMAL_UNITS: Final = ("m", "", *"kMGTPE")
_EXPONENT_UNITS: Final = ("e-3", "", *(f"e{power}" for power in range(3, 19, 3)))
_INT64_DIGITS: Final = 18
_BINARY_DIGITS: Final = {unit: 14 - 3 * power for power, unit in enumerate(_BINARY, 1)}
"""By binary unit, how many digits before it Kubernetes holds as an int64."""
_LONGEST: Final = 160
"""No quantity is longer: a sign, 64 digits on each side of the point, and a unit."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity: a multiple of 1e-9, and how Kubernetes holds it (apimachinery pkg/api/resource/amount.go).

    The amount is `unscaled` times ten to the `exponent`. `int64`: it is held as an int64 with an exponent;
    only then `asInteger()` has a value.
    """

    amount: Fraction
    unscaled: int = field(compare=False)
    exponent: int = field(compare=False)
    int64: bool = field(compare=False)

    @classmethod
    def of(cls, unscaled: int, exponent: int, *, int64: bool) -> Self:
        """Returns the quantity of an unscaled number and a power of ten."""
        return cls(unscaled * Fraction(10) ** exponent, unscaled, exponent, int64)

    @classmethod
    def of_amount(cls, amount: Fraction) -> Self:
        """Returns the quantity of an amount, rounded away from zero to a multiple of 1e-9."""
        if amount.denominator == 1 and INT_MIN <= amount <= INT_MAX:
            return cls(amount, amount.numerator, 0, int64=True)
        nanos = math.ceil(abs(amount) * 10**_NANO)
        return cls.of(-nanos if amount < 0 else nanos, -_NANO, int64=False)

    def plus(self, other: Quantity, sign: int = 1) -> Quantity:
        """Returns the sum, or with a `sign` of -1 the difference."""
        fast = self.int64 and other.int64
        if fast and not other.unscaled:
            return self
        if fast and not self.unscaled:
            return Quantity.of(sign * other.unscaled, other.exponent, int64=True)
        exponent = min(self.exponent, other.exponent)
        a, b = (q.unscaled * 10 ** (q.exponent - exponent) for q in (self, other))
        fits = all(INT_MIN <= number <= INT_MAX for number in (a, b, a + sign * b))
        return Quantity.of(a + sign * b, exponent, int64=fast and fits)


register_type(Quantity, "kubernetes.Quantity")


def parse(text: str) -> Quantity:
    """Returns the quantity of a text, rounded away from zero to a multiple of 1e-9, as Kubernetes does.

    Raises FunctionError for a malformed quantity.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise FunctionError("quantity() needs a form such as '500m' or '2Gi'")
    sign, digits, binary, decimal, power = match.groups()
    whole, _, decimals = digits.partition(".")
    whole = whole.lstrip("0") or "0"
    unscaled = int(whole + decimals) * _BINARY.get(binary, 1)
    exponent = (_EXPONENTS[decimal] if decimal else int(power or 0)) - len(decimals)
    if binary:
        int64 = not decimals and len(whole) <= _BINARY_DIGITS[binary]
    else:
        int64 = len(whole) + len(decimals) <= _INT64_DIGITS and exponent >= -_NANO
    negative = -1 if sign == "-" else 1
    if int64 and unscaled <= INT_MAX:
        return Quantity.of(negative * unscaled, exponent, int64=True)
    nanos = math.ceil(unscaled * Fraction(10) ** (exponent + _NANO))
    if binary:
        nanos = min(nanos, INT_MAX * 10**_NANO)
    return Quantity.of(negative * nanos, -_NANO, int64=False)


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


def _integer(quantity: Quantity) -> int | None:
    """Returns the quantity as an integer, if Kubernetes can do that without its decimals (`AsInt64`)."""
    if not quantity.int64 or quantity.exponent < 0 or not INT_MIN <= quantity.amount <= INT_MAX:
        return None
    return quantity.amount.numerator


def _as_integer(quantity: Quantity) -> int:
    number = _integer(quantity)
    if number is None:
        raise FunctionError("quantity cannot be converted to an integer of 64 bits")
    return number


def _as_float(quantity: Quantity) -> float:
    """Returns the quantity as Go computes it (`AsApproximateFloat64`): the last digit may differ from the
    nearest double.
    """
    return float(quantity.unscaled) * 10.0**quantity.exponent


def _sum(a: Quantity, b: Quantity | int, sign: int = 1) -> Quantity:
    return a.plus(b if isinstance(b, Quantity) else Quantity.of(b, 0, int64=True), sign)


def _compare(a: Quantity, b: Quantity) -> int:
    return (a.amount > b.amount) - (a.amount < b.amount)


def _sign(quantity: Quantity) -> int:
    return (quantity.amount > 0) - (quantity.amount < 0)


_Q: Final = "kubernetes.Quantity"
OVERLOADS: Final[tuple[Overload, ...]] = (
    scanning(f"quantity(string) -> {_Q}", parse, flat=40),
    scanning("isQuantity(string) -> bool", _is),
    # Kubernetes documents a method, and has a function (apiserver pkg/cel/library/quantity.go).
    overload(f"sign({_Q}) -> int", _sign),
    overload(f"<{_Q}>.sign() -> int", _sign),
    overload(f"<{_Q}>.isInteger() -> bool", lambda q: _integer(q) is not None),
    overload(f"<{_Q}>.asInteger() -> int", _as_integer),
    overload(f"<{_Q}>.asApproximateFloat() -> double", _as_float),
    overload(f"<{_Q}>.add({_Q}|int) -> {_Q}", _sum),
    overload(f"<{_Q}>.sub({_Q}|int) -> {_Q}", lambda a, b: _sum(a, b, -1)),
    overload(f"<{_Q}>.isGreaterThan({_Q}) -> bool", lambda a, b: a.amount > b.amount),
    overload(f"<{_Q}>.isLessThan({_Q}) -> bool", lambda a, b: a.amount < b.amount),
    overload(f"<{_Q}>.compareTo({_Q}) -> int", _compare),
)
