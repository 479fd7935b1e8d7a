"""semver(): semantic versions; with a second argument `true`, the text is normalised first (`v1.2`
is 1.2.0).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from webhook.cel.compiler.functions import Overload, overload, scanning
from webhook.cel.values.errors import FunctionError
from webhook.cel.values.values import UINT_MAX, register_type

_NUMBER: Final = r"(0|[1-9]\d{0,19})"
_FORM: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
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
    """Returns the text without a leading `v` and leading zeros, and with all three numbers. Raises
    FunctionError for a pre-release or build metadata of a version with fewer numbers.
    """
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and {"+", "-"} & {*parts[-1]}:
        raise FunctionError("semver() takes a pre-release or build metadata after three numbers only")
    return ".".join((*parts, "0", "0")[:3])


def _without_zeros(part: str) -> str:
    rest = part.lstrip("0")
    return part if len(part) < 2 else rest if re.match("[0-9]", rest) else f"0{rest}"


def _is_identifier(part: str) -> bool:
    """Returns whether a part of a pre-release is a word, or a number of 64 bits without leading zeros."""
    return not part.isdigit() or (len(part) <= 20 and str(int(part)) == part and int(part) <= UINT_MAX)


def parse(text: str, normalize: bool = False) -> Semver:
    """Returns the version of a text. Raises FunctionError for a malformed version."""
    match = _FORM.fullmatch(_normalized(text) if normalize else text)
    pre = tuple(match[4].split(".")) if match and match[4] else ()
    if match is None or not all(map(_is_identifier, (*match.groups()[:3], *pre))):
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
