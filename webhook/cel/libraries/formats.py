"""format.named(): Kubernetes' named string formats; `validate` returns the problems of a string."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from webhook.cel.compiler.functions import Overload, overload
from webhook.cel.libraries import url
from webhook.cel.values.budget import Meter
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.temporal import parse_timestamp
from webhook.cel.values.values import ABSENT, Optional, register_type

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_LABEL_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", re.ASCII)
_UUID: Final = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.I
)
Check = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Format:
    """A named string format; `name` is one of `_CHECKS`."""

    name: str


register_type(Format, "kubernetes.NamedFormat")


def _shaped(pattern: re.Pattern[str], limit: int, expected: str) -> Check:
    def check(text: str) -> list[str]:
        wrong = [] if len(text) <= limit else [f"must be no more than {limit} characters"]
        return wrong if pattern.fullmatch(text) else [*wrong, f"must be {expected}"]

    return check


def _subdomain(text: str) -> list[str]:
    wrong = [] if len(text) <= 253 else ["must be no more than 253 characters"]
    if not all(_LABEL.fullmatch(part) for part in text.split(".")):
        wrong.append("must be lower case letters, digits, '-' and '.', with a letter or digit at each end")
    return wrong


def _prefix(check: Check) -> Check:
    """Returns the check for the prefix of a name (as in `generateName`), which may end in `-`."""
    return lambda text: check(f"{text[:-1]}a" if text.endswith("-") else text)


def _qualified(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    wrong = _subdomain(prefix) if slash else []
    if not name or len(name) > 63 or not _VALUE.fullmatch(name):
        wrong.append(
            "name must be 1 to 63 letters, digits, '-', '_' and '.', with a letter or digit at each end"
        )
    return wrong


def _attempt(parse: Callable[[str], object], expected: str) -> Check:
    def check(text: str) -> list[str]:
        try:
            parse(text)
        except (ValueError, FunctionError, binascii.Error):
            return [f"must be {expected}"]
        return []

    return check


def _date(text: str) -> dt.date:
    if len(text) != 10:
        raise ValueError
    return dt.date.fromisoformat(text)


def _base64(text: str) -> bytes:
    if not text:
        raise ValueError
    return base64.b64decode(text, validate=True)


_LABEL_WORDS: Final = "lower case letters, digits and '-', with a letter or digit at each end"
_LABEL_1035_WORDS: Final = "lower case letters, digits and '-', beginning with a letter, not ending in '-'"
_VALUE_WORDS: Final = "letters, digits, '-', '_' and '.', with a letter or digit at each end"
_CHECKS: Final[dict[str, Check]] = {
    "dns1123Label": _shaped(_LABEL, 63, _LABEL_WORDS),
    "dns1123Subdomain": _subdomain,
    "dns1035Label": _shaped(_LABEL_1035, 63, _LABEL_1035_WORDS),
    "dns1123LabelPrefix": _prefix(_shaped(_LABEL, 63, _LABEL_WORDS)),
    "dns1123SubdomainPrefix": _prefix(_subdomain),
    "dns1035LabelPrefix": _prefix(_shaped(_LABEL_1035, 63, _LABEL_1035_WORDS)),
    "qualifiedName": _qualified,
    "labelValue": _shaped(_VALUE, 63, _VALUE_WORDS),
    "uri": _attempt(url.parse, "an absolute URI or an absolute path"),
    "uuid": _shaped(_UUID, 36, "a UUID"),
    "byte": _attempt(_base64, "base64"),
    "date": _attempt(_date, "a date such as 2026-01-31"),
    "datetime": _attempt(parse_timestamp, "an RFC 3339 time"),
}


def _by_name(name: str) -> Optional:
    return Optional(Format(name)) if name in _CHECKS else ABSENT


def _validate(meter: Meter, form: Format, text: str) -> Optional:
    meter.charge(len(text) // 10)
    wrong = _CHECKS[form.name](text)
    return Optional(wrong) if wrong else ABSENT


OVERLOADS: Final[tuple[Overload, ...]] = (
    overload("format.named(string) -> optional_type", _by_name),
    overload("<kubernetes.NamedFormat>.validate(string) -> optional_type", _validate, metered=True),
    *(
        overload(f"format.{name}() -> kubernetes.NamedFormat", lambda form=Format(name): form)
        for name in _CHECKS
    ),
)
