"""The CEL specification's conformance cases. CEL_CONFORMANCE names their folder or file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.cel import CelError, CelType, Declarations, Duration, Timestamp, UInt, compile
from webhook.cel.values.temporal import parse_duration, parse_timestamp
from webhook.cel.values.values import from_key, to_key

EXCEPTIONS = Path(__file__).with_name("conformance_exceptions.yaml")
LIBRARIES = frozenset({"math", "base64", "bind", "strings"})


def _cases() -> list[dict[str, Any]]:
    place = os.environ.get("CEL_CONFORMANCE")
    if not place:
        return []
    path = Path(place)
    path = path / "cel-conformance.jsonl" if path.is_dir() else path
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _name(case: dict[str, Any]) -> str:
    return f"{case['file']}/{case['section']}/{case['name']}"


def _decode(typed: dict[str, Any]) -> Any:
    ((kind, raw),) = typed.items()
    if kind == "list":
        return [_decode(item) for item in raw]
    if kind == "map":
        return {to_key(_decode(key)): _decode(value) for key, value in raw}
    simple = {
        "int": int,
        "uint": lambda text: UInt(int(text)),
        "double": float,
        "bytes": bytes.fromhex,
        "type": CelType,
        "timestamp": parse_timestamp,
        "duration": parse_duration,
    }
    return simple[kind](raw) if kind in simple else raw


def _identical(a: Any, b: Any) -> bool:
    """Are these the same value of the same type?"""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_identical, a, b))
    if isinstance(a, dict):
        return {(type(from_key(k)), k) for k in a} == {(type(from_key(k)), k) for k in b} and all(
            _identical(a[key], b[key]) for key in a
        )
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)


def _evaluate(case: dict[str, Any]) -> Any:
    bindings = {name: _decode(value) for name, value in case.get("bindings", {}).items()}
    declared = {
        "variables": dict.fromkeys(bindings),
        "libraries": LIBRARIES,
        "container": case.get("container", ""),
    }
    try:
        program = compile(case["expr"], Declarations(**declared))
    except CelError as bad:
        if bad.kind == "syntax":
            raise
        # The suite has cases that are parsed and not checked: what is wrong fails there when it is evaluated.
        program = compile(case["expr"], Declarations(**declared, strict=False))
    return program.evaluate(bindings)


def _outcome(case: dict[str, Any]) -> str | None:
    """None where the case passes, else what came instead."""
    try:
        value = _evaluate(case)
    except CelError as bad:
        return None if "error" in case["expect"] else f"error: {bad.message}"
    if "error" in case["expect"]:
        return f"{value!r}, an error was expected"
    return None if _identical(value, _decode(case["expect"]["value"])) else f"{value!r}"


def _exceptions() -> dict[str, str]:
    return yaml.safe_load(EXCEPTIONS.read_text("utf-8")) or {}


def _results() -> Iterator[tuple[dict[str, Any], str | None]]:
    cases = _cases()
    if not cases:
        pytest.skip(
            "the specification's cases are no part of this tree: runs where CEL_CONFORMANCE names a folder "
            "with cel-conformance.jsonl, as in .ci/run"
        )
    for case in cases:
        yield case, _outcome(case)


def test_the_specifications_cases_pass() -> None:
    """Every conformance case passes, save the listed exceptions; an exception that passes is no exception."""
    exceptions = _exceptions()
    results = list(_results())
    wrong = {_name(case): f"{case['expr']} -> {got}" for case, got in results if got is not None}
    assert len(exceptions) <= 15
    assert {name: text for name, text in wrong.items() if name not in exceptions} == {}
    assert sorted(exceptions.keys() - wrong.keys()) == []


def test_the_case_reader_tells_types_apart() -> None:
    """A uint is not an int here, nor 1 true: the comparison above would else prove less than it says."""
    assert not _identical(UInt(1), 1)
    assert not _identical(True, 1)
    assert not _identical({to_key(True): 1}, {1: 1})
    assert _identical(_decode({"duration": "90s"}), Duration(90 * 10**9))
    assert _identical(_decode({"timestamp": "1970-01-01T00:00:01Z"}), Timestamp(10**9))
