"""Regular expressions by google-re2: matching takes linear time in the input for every pattern."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

from webhook.cel.values.errors import FunctionError


def _options(max_bytes: int) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = max_bytes  # RE2 refuses a pattern that needs more
    return options


_SMALL: Final = _options(256 << 10)


_LARGE: Final = _options(4 << 20)


def pattern(source: str) -> Any:
    """Returns the compiled pattern. Raises FunctionError for one that RE2 does not accept.

    The first call for a pattern takes up to 0.1 s (`\\pL{1,200}`).
    """
    return _small(source) or _large(source)


# Policies have a few hundred patterns, of some kilobytes each. Anybody who may write a claim can add others:
# hence the two bounds. The entries of each cache take at most some 100 MB.
@lru_cache(maxsize=1024)
def _small(source: str) -> Any:
    """Returns the compiled pattern; None if it is invalid or large."""
    try:
        return re2.compile(source, _SMALL)
    except (re2.error, UnicodeError):
        return None


@lru_cache(maxsize=32)
def _large(source: str) -> Any:
    try:
        return re2.compile(source, _LARGE)
    except (re2.error, UnicodeError):
        raise FunctionError("not a valid RE2 regular expression") from None
    finally:
        re2.purge()  # the module keeps 128 patterns of its own
