"""semver(): semantic versions; with a second argument `true`, the text is normalised first (`v1.2`
is 1.2.0).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from webhook.cel.compiler.functions import Overload, overload, scanning
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import register_type

_NUMBER: Final = r"(0|[1-9]\d{0,18})"
_FORM: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
_LOOSE: Final = re.compile(r"v?(\d{1,19})(?:\.(\d{1,19}))?(?:\.(\d{1,19}))?([-+].*)?", re.ASCII)
Key = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Semver:
    """A version. `pre`: the parts of its pre-release. Build metadata (after `+`) is ignored in
    comparisons.
    """

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...]

    def key(self) -> tuple[int, int, int, bool, tuple[Key, ...]]:
        """Returns the sort key: a pre-release comes before its release, and numbers in it before words."""
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre)
        return self.major, self.minor, self.patch, not parts, parts


register_type(Semver, "kubernetes.Semver")


def _normalized(text: str) -> str:
    match = _LOOSE.fullmatch(text)
    if match is None:
        return text
    major, minor, patch, rest = match.groups()
    return f"{int(major)}.{int(minor or 0)}.{int(patch or 0)}{rest or ''}"


def parse(text: str, normalize: bool = False) -> Semver:
    """Returns the version of a text. Raises FunctionError for a malformed version."""
    match = _FORM.fullmatch(_normalized(text) if normalize else text)
    pre = tuple(match[4].split(".")) if match and match[4] else ()
    if match is None or any(part.isdigit() and len(part) > 1 and part[0] == "0" for part in pre):
        raise FunctionError("semver() needs a form such as '1.2.3'")
    return Semver(int(match[1]), int(match[2]), int(match[3]), pre)


def _is(text: str, normalize: bool = False) -> bool:
    try:
        parse(text, normalize)
    except FunctionError:
        return False
    return True


def _compare(a: Semver, b: Semver) -> int:
    return (a.key() > b.key()) - (a.key() < b.key())


_S: Final = "kubernetes.Semver"
OVERLOADS: Final[tuple[Overload, ...]] = (
    scanning(f"semver(string) -> {_S}", parse),
    scanning(f"semver(string, bool) -> {_S}", parse),
    scanning("isSemver(string) -> bool", _is),
    scanning("isSemver(string, bool) -> bool", _is),
    overload(f"<{_S}>.major() -> int", lambda v: v.major),
    overload(f"<{_S}>.minor() -> int", lambda v: v.minor),
    overload(f"<{_S}>.patch() -> int", lambda v: v.patch),
    overload(f"<{_S}>.compareTo({_S}) -> int", _compare),
    overload(f"<{_S}>.isLessThan({_S}) -> bool", lambda a, b: a.key() < b.key()),
    overload(f"<{_S}>.isGreaterThan({_S}) -> bool", lambda a, b: a.key() > b.key()),
)
