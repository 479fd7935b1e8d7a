"""Kubernetes quantities as whole numbers: cpu in millicores, every other resource in its base unit.

The grammar is that of apimachinery's `resource.Quantity`: a signed decimal and a binary (Ki … Ei), decimal
(n u m "" k … E) or exponent (e3, E3) suffix. A node's amounts are rounded down and a pod's requests up, so
that rounding never makes a pod fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from planner.model.errors import InputError, Where
from planner.model.words import shortened

_SUFFIX = {
    "": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip


_QUANTITY = re.compile(
    r"([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))(?:([eE][+-]?\d{1,3})|([KMGTPE]i|[numkMGTPE])?)"
)


LARGEST = 2**63 - 1
"""The largest amount that the API server's int64 holds; a larger one is an error."""


_LONGEST = 40
"""The maximum length, in characters, of a quantity that is cached: a longer text is hardly a real amount, and
would only fill memory."""


def parse(value: object, where: Where) -> Fraction:
    """Returns the exact value of a quantity in a manifest (a string or a number).

    Raises `InputError` if it is invalid, negative, or larger than `LARGEST`.
    """
    text = str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    amount = _exact(text)
    if amount is None:
        meant = _meant(text) or "4, 500m or 16Gi"
        raise InputError(f"{_short(value)} is no quantity; write it as {meant}", where)
    if amount.numerator < 0:
        raise InputError(f"{text} is negative; a quantity is zero or more", where)
    if amount.numerator > LARGEST * amount.denominator:
        raise InputError(f"{text} is more than the API server can hold ({LARGEST})", where)
    return amount


def _meant(text: str) -> str:
    """Returns the quantity that is probably meant by text such as "8 Gi", "8gb" or "8GiB"; "" if unknown."""
    match = _WRITTEN.fullmatch(text[:_LONGEST])
    if match is None:
        return ""
    unit = match[2].rstrip("bB")
    # As it is written first: m is a thousandth, M a million. Kilo is a small k.
    meant = (f"{match[1]}{own}" for own in (unit, unit.replace("K", "k"), unit.title()))
    return next((text for text in meant if _exact(text) is not None), "")


_WRITTEN = re.compile(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*")
"""A number with letters after it, with blanks that Kubernetes does not permit."""


@lru_cache(maxsize=4096)
def _exact(text: str) -> Fraction | None:
    """Returns the value of a quantity's text, None if it is invalid.

    Cached, because manifests repeat a few values in every pod.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number, exponent, suffix = match.groups()
    scale = Fraction(Decimal("1" + exponent)) if exponent else _SUFFIX[suffix or ""]
    return Fraction(Decimal(number)) * scale


def amount(resource: str, value: object, where: Where, *, up: bool) -> int:
    """Returns the quantity in the base unit of `resource`, rounded up (a request) or down (a node's amount).

    Raises `InputError` as `parse` does, and for a fraction of an extended resource.
    """
    whole = _cached_amount(resource, value, up=up)
    return _whole(resource, value, where, up=up) if whole is None else whole


def _whole(resource: str, value: object, where: Where, *, up: bool) -> int:
    exact = parse(value, where)
    if "/" in resource and exact.denominator != 1:
        whole = -(-exact.numerator // exact.denominator)
        pieces = f"it comes in whole pieces; write for example {whole}"
        raise InputError(f"{_short(value)} of an extended resource; {pieces}", where)
    scaled = exact.numerator * (1000 if resource == "cpu" else 1)
    return -(-scaled // exact.denominator) if up else scaled // exact.denominator


def _cached_amount(resource: str, value: object, *, up: bool) -> int | None:
    """Returns the amount of a quantity, computed once for each text; None for an invalid value, and for one
    that is not cached (too long, or a number that is no plain integer)."""
    text = str(value) if type(value) is int and 0 <= value <= LARGEST else value
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None
    unit = resource if resource == "cpu" else "/" if "/" in resource else ""
    return _of_text(unit, text, up=up)


@lru_cache(maxsize=4096)
def _of_text(unit: str, text: str, *, up: bool) -> int | None:
    """Returns the amount in base units, None if it is invalid. `unit`: "cpu", "/" for an extended resource,
    else "".

    Cached, because an object's resources are read several times in each decision, and the nodes and pods of a
    cluster state few different amounts.
    """
    try:
        return _whole(unit, text, Where(), up=up)
    except InputError:
        return None


def amounts(values: object, where: Where, *, up: bool) -> dict[str, int]:
    """Returns a resource list (`limits`, `requests`, `allocatable`) in base units, empty for None.

    Raises `InputError` if `values` is not a mapping or contains an invalid quantity.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise InputError(f"expected a mapping of resource to quantity, found {_short(values)}", where)
    result: dict[str, int] = {}
    for name, value in values.items():
        resource = str(name)
        whole = _cached_amount(resource, value, up=up)
        if whole is None:  # only an error message needs the location
            whole = _whole(resource, value, where.at_path(f"{where.field}.{name}"), up=up)
        result[resource] = whole
    return result


def show(resource: str, value: int) -> str:
    """Returns an amount as text: `1500m` for cpu 1500, `16Gi` for memory 17179869184."""
    if resource == "cpu":
        return str(value // 1000) if value % 1000 == 0 else f"{value}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for suffix in ("Ti", "Gi", "Mi", "Ki"):
            unit = int(_SUFFIX[suffix])
            if value >= unit and value % unit == 0:
                return f"{value // unit}{suffix}"
        if value >= 2**30:
            return f"{value / 2**30:.1f}Gi"
    return str(value)


def _is_word(value: object) -> bool:
    return value is None or isinstance(value, bool)


def _short(value: object) -> str:
    return shortened(json.dumps(value) if _is_word(value) else repr(value), 40)
