"""The function libraries, a file each. `table` returns the functions of an environment.

Begin with `lists`: each module ends with `OVERLOADS`, the signatures and implementations of its functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from webhook.cel.compiler.functions import Overload, Table
from webhook.cel.libraries import (
    authorizer,
    conversions,
    core,
    extra,
    later_strings,
    lists,
    network,
    optionals,
    quantity,
    regex,
    semver,
    sets,
    strings,
    times,
    url,
)
from webhook.cel.libraries import formats as named_formats

_BASE: Final = (
    core.OVERLOADS
    + conversions.OVERLOADS
    + strings.OVERLOADS
    + times.OVERLOADS
    + lists.OVERLOADS
    + sets.OVERLOADS
    + regex.OVERLOADS
    + optionals.OVERLOADS
    + url.OVERLOADS
    + network.OVERLOADS
    + quantity.OVERLOADS
    + semver.OVERLOADS
    + named_formats.OVERLOADS
    + authorizer.OVERLOADS
)
EXTRA: Final[Mapping[str, tuple[Overload, ...]]] = MappingProxyType(
    {"math": extra.MATH, "base64": extra.BASE64, "strings": later_strings.OVERLOADS, "bind": ()}
)


@lru_cache(maxsize=64)  # more than the sets of libraries that are declared
def table(libraries: frozenset[str], mutations: bool) -> Table:
    """Returns the functions of an environment. Raises ValueError for an unknown library."""
    unknown = libraries - EXTRA.keys()
    if unknown:
        raise ValueError(f"unknown CEL library {', '.join(sorted(unknown))}; there are {', '.join(EXTRA)}")
    chosen = [entry for name in sorted(libraries) for entry in EXTRA[name]]
    # The first of equal overloads is called: a library may replace a function of the base environment.
    return Table([*chosen, *_BASE, *(extra.MUTATIONS if mutations else ())])
