"""Random CEL expressions have the value of the API server's own library, or are errors in both."""

from __future__ import annotations

import base64
import json
import math
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.e2e.binaries import find
from tests.e2e.cel_expressions import OBJECT, expression
from tests.e2e.conftest import or_exit
from webhook.cel import (
    CelError,
    CelType,
    Declarations,
    Duration,
    Optional,
    Timestamp,
    UInt,
    compile,
    unlike_elements,
)
from webhook.cel.values.values import from_key, type_name

EXPRESSIONS = int(os.environ.get("CEL_EXPRESSIONS", "6000"))
SEED = int(os.environ.get("CEL_SEED", "1"))
DEPTH = 3
LIMITS = (
    # A JSON list whose element is optional and absent.
    re.compile(r"^panic: "),
    # A key of a type that no map has: absent here.
    re.compile(r"^invalid qualifier type"),
    # By the specification's cases an order with NaN is false.
    re.compile(r"^NaN values cannot be ordered"),
    # The budget, which counts other units here.
    re.compile(r"cost limit exceeded"),
    # A sum of quantities as the right side of ==, and functions of lists and scalars whose static type cel-go
    # has lost: elements of optionals, results of distinct(), reverse() and sortBy().
    re.compile(r"no such overload"),
)
"""Errors of the API server's library that are its limits: an expression may have a value here."""
REFUSED = re.compile(r"is no map key")
"""Errors here that the API server's library does not have: docs/cel.md."""
DECLARED = Declarations(variables={"object": None})
LIBRARY_TYPES = {
    "net.IP",
    "net.CIDR",
    "kubernetes.NamedFormat",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.URL",
}
"""Values whose parts are compared by their methods only."""


@pytest.fixture(scope="module")
def library() -> Path:
    """The program that evaluates expressions with the API server's library."""
    programs = or_exit(find)
    if not os.access(programs["cel"], os.X_OK):
        pytest.skip("these programs were not built by .ci/build-controlplane, which adds `cel`")
    return Path(programs["cel"])


def typed(value: Any) -> list[Any]:
    """A value with the name of its type before it, as the program writes it."""
    kind = type_name(value)
    if isinstance(value, bool) or value is None:
        return [kind, {True: "true", False: "false", None: "NULL_VALUE"}[value]]
    if kind == "list":
        return [kind, *map(typed, value)]
    if kind == "map":
        return [kind, [[typed(from_key(key)), typed(value[key])] for key in value]]
    if isinstance(value, Optional):
        return ["optional", typed(value.value)] if value.present else ["optional"]
    if isinstance(value, Timestamp):
        return ["timestamp", *divmod(value.nanos, 10**9)]
    if isinstance(value, Duration):
        return ["duration", value.nanos]
    if isinstance(value, CelType):
        return ["type", value.name]
    if isinstance(value, bytes):
        return [kind, base64.b64encode(value).decode()]
    return [kind, str(int(value)) if isinstance(value, (int, UInt)) else value]


def equal_values(ours: list[Any], upstream: list[Any]) -> bool:
    """Whether two typed values are equal; entries of maps have no order."""
    kind, *rest = ours
    if kind != upstream[0] or kind in LIBRARY_TYPES:
        return bool(kind == upstream[0])
    if kind == "double":
        number = float(upstream[1])
        return bool(rest[0] == number) or (math.isnan(rest[0]) and math.isnan(number))
    if kind == "map":
        left = list(upstream[1])
        for entry in rest[0]:
            twin = next((other for other in left if all(map(equal_values, entry, other))), None)
            if twin is None:
                return False
            left.remove(twin)
        return not left
    if kind in ("list", "optional"):
        return len(ours) == len(upstream) and all(map(equal_values, rest, upstream[1:]))
    return ours == upstream


def outcome(text: str) -> list[Any] | CelError:
    """The value of an expression here, or its error."""
    try:
        return typed(compile(text, DECLARED).evaluate({"object": OBJECT}))
    except CelError as error:
        return error


def differences(library: Path, texts: list[str]) -> Iterator[str]:
    """The expressions with another outcome here than in the API server's library."""
    questions = "".join(json.dumps({"expression": text, "object": OBJECT}) + "\n" for text in texts)
    done = subprocess.run([library], input=questions, capture_output=True, text=True, check=True)
    for text, line in zip(texts, done.stdout.splitlines(), strict=True):
        upstream, ours = json.loads(line), outcome(text)
        warned = not isinstance(ours, CelError) and any(unlike_elements(text))
        if upstream.get("refused") or warned:
            # The compiler of the API server refuses more: docs/cel.md. What is warned of is a part of it.
            if "refused" not in upstream:
                yield f"{text}\n  upstream has no error, ours warns of unlike elements"
            continue
        if problem := upstream.get("error", ""):
            agree = isinstance(ours, CelError) or any(limit.search(problem) for limit in LIMITS)
        elif isinstance(ours, CelError):
            agree = ours.kind == "budget" or bool(REFUSED.search(ours.message))
        else:
            agree = equal_values(ours, upstream["value"])
        if not agree:
            yield f"{text}\n  upstream: {problem or upstream['value']}\n  ours: {ours}"


@pytest.mark.parametrize("depth", range(1, DEPTH + 1))
def test_random_expressions_have_the_value_of_the_api_servers_library(library: Path, depth: int) -> None:
    """Values and their types are equal, and what is an error there is an error here."""
    random = Random(SEED + depth)
    texts = [expression(random, depth) for _ in range(EXPRESSIONS // DEPTH)]
    assert list(differences(library, texts)) == []


def test_most_of_the_random_expressions_have_a_value() -> None:
    """They would show little otherwise."""
    random = Random(SEED)
    outcomes = [outcome(expression(random, 2)) for _ in range(500)]
    assert sum(not isinstance(each, CelError) for each in outcomes) > 250
