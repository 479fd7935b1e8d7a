"""Patterns that are compiled once, within bounds of memory."""

from __future__ import annotations

import pytest

from webhook.cel.values.errors import FunctionError
from webhook.cel.values.regex import pattern


def test_a_pattern_is_compiled_once() -> None:
    """A small one and a large one."""
    for source in ("^gpu-[0-9]+$", r"\pL{1,200}"):
        assert pattern(source) is pattern(source)
        assert pattern(source).search("gpu-1")


def test_few_large_patterns_are_kept() -> None:
    """One takes 2 MB, and a claim may have hundreds, each of them different."""
    first, *_ = [pattern(rf"\pL{{1,100}}x{n}") for n in range(40)]
    assert pattern(r"\pL{1,100}x0") is not first


@pytest.mark.parametrize("source", ["(", r"\pL{1,1000}", "\ud800"])
def test_a_pattern_that_re2_does_not_accept_is_an_error(source: str) -> None:
    """It does not parse, is too large, or is no text."""
    with pytest.raises(FunctionError, match="not a valid RE2"):
        pattern(source)
