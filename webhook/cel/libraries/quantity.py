"""quantity(): Kubernetes' resource quantities, such as `500m`, `2Gi` and `1e3`, as exact fractions."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from webhook.cel.compiler.functions import Overload, overload, scanning
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import INT_MAX, INT_MIN, register_type

_FORM: Final = re.compile(
    r"([+-]?)(\d{1,64}(?:\.\d{0,64})?|\.\d{1,64})(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,3}))?", re.ASCII
)
_BINARY: Final = {unit + "i": 1024 ** (power + 1) for power, unit in enumerate("KMGTPE")}
_DECIMAL: Final = {
    **{unit: Fraction(1000 ** (power + 1)) for power, unit in enumerate("kMGTPE")},
    **{unit: Fraction(1, 1000 ** (power + 1)) for power, unit in enumerate("mun")},
}
_NANO: Final = 10**9


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
