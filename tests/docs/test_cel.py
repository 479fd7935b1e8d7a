"""docs/cel.md is true: its expressions have the values shown, its variables and functions are there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.docs.generate_cel import PAGE
from webhook.cel import CostBudget, Declarations, to_json
from webhook.cel import compile as compile_cel
from webhook.policy.loading.expressions import BASE_VARIABLES
from webhook.policy.model.policy import BAYPLAN_VARIABLES
from webhook.variables.cluster import NO_CLUSTER
from webhook.variables.gang import gang_variable
from webhook.variables.plan import NO_PLAN
from webhook.workloads import read

BLOCK = re.compile(r"```cel\n(.*?)```", re.DOTALL)
LINES = [line for block in BLOCK.findall(PAGE.read_text()) for line in block.splitlines() if line.strip()]

OBJECT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train", "labels": {"app.kubernetes.io/name": "trainer"}},
    "spec": {
        "containers": [
            {"name": "train", "image": "trainer:latest", "resources": {"limits": {"nvidia.com/gpu": "8"}}},
            {"name": "upload", "image": "curl:8"},
        ]
    },
}


def value(text: str, **declared: Any) -> Any:
    """What an expression gives with these variables, as JSON."""
    names: dict[str, Any] = dict.fromkeys(declared)
    program = compile_cel(text, Declarations(variables=names, mutations=True))
    return to_json(program.evaluate(declared, CostBudget()))


@pytest.mark.parametrize("line", LINES)
def test_each_expression_has_the_value_that_is_shown(line: str) -> None:
    """Left of the last `//` the expression, right of it CEL for its value."""
    expression, _, shown = line.rpartition("// ")
    assert value(expression, object=OBJECT) == value(shown)


def test_there_are_many() -> None:
    """So that a page in another form does not pass for nothing."""
    assert len(LINES) > 25


def test_every_variable_is_in_the_table() -> None:
    """Kubernetes' and ours, each in a row of its own."""
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert set(rows) == {*BASE_VARIABLES, *BAYPLAN_VARIABLES, "params", "variables"}


@pytest.mark.parametrize("name", ["gang", "plan", "cluster"])
def test_the_fields_that_are_named_are_there(name: str) -> None:
    """Of `gang`, `plan` and `cluster`, as an expression sees them."""
    workload = read(OBJECT, namespace="a")
    gang = gang_variable(workload, "a", "", OBJECT)
    variable = {
        "gang": {**gang, **gang["podSets"][0]},
        "plan": NO_PLAN,
        "cluster": NO_CLUSTER,
    }[name]
    (cell,) = re.findall(rf"^\| `{name}` \| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", cell)) <= set(variable or ())
