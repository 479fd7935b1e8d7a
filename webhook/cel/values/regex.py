"""Regular expressions by google-re2: matching takes linear time in the input for every pattern."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

from webhook.cel.values.errors import FunctionError

_OPTIONS: Final = re2.Options()


_OPTIONS.log_errors = False


_OPTIONS.max_mem = 4 << 20  # bytes; RE2 refuses a pattern that needs more


@lru_cache(maxsize=1024)
def pattern(source: str) -> Any:
    """Returns the compiled pattern. Raises FunctionError for one that RE2 does not accept."""
    try:
        return re2.compile(source, _OPTIONS)
    except (re2.error, UnicodeError):
        raise FunctionError("not a valid RE2 regular expression") from None
