"""What an expression may cost, and that it stops when it costs more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from tests.effort import calls, cpu_seconds
from webhook.cel import CelError, CostBudget, Declarations, Function, Program, compile
from webhook.cel.values.budget import POLL_EVERY

DECLARED = Declarations(variables={"l": None, "s": None}, libraries=frozenset({"bind"}))
TEN = list(range(10))
LONG = "a" * 1_000_000
NESTED = "l.all(a, l.all(b, l.all(c, l.all(d, l.all(e, l.all(f, a + b + c + d + e + f >= 0))))))"


def _stopped(text: str, limit: int = 10_000_000, **bindings: Any) -> Callable[[], None]:
    """A run of this expression until the budget stops it."""
    program = compile(text, DECLARED)

    def run() -> None:
        with pytest.raises(CelError) as caught:
            program.evaluate({"l": TEN, "s": LONG, **bindings}, CostBudget(limit))
        assert caught.value.kind == "budget"

    return run


@pytest.mark.parametrize("limit", [10_000, 100_000, 1_000_000])
def test_six_nested_macros_do_no_more_than_their_budget(limit: int) -> None:
    """A million innermost steps are not taken: the work until the stop follows the limit, with less than two
    function calls for a unit.
    """
    assert calls(_stopped(NESTED, limit), builtins=True) < 2 * limit


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(100000000).size() > 0",
        "s.replace('', s).size() > 0",
        "cel.bind(a, s + s, cel.bind(b, a + a, cel.bind(c, b + b, size(c + c) > 0)))",
        "lists.range(1000).map(x, s).join(s).size() > 0",
        "lists.range(1000).all(i, '%s'.format([lists.range(1000).map(x, s)]) != '')",
        "l.all(a, l.all(b, l.all(c, l.all(d, s.contains('zz') == false))))",
        "l.all(a, l.all(b, l.all(c, l.all(d, s.matches('(a|b)*c') == false))))",
        "lists.range(1000).all(i, s.findAll('a').size() > 1)",
        "lists.range(100000).all(i, s.split('').size() > 1)",
        "lists.range(100000).all(i, l.map(x, x + i).size() == 10)",
        "lists.range(2000).all(i, sets.contains(lists.range(1000), lists.range(1000)))",
    ],
)
def test_no_function_is_a_way_round_the_budget(text: str) -> None:
    """Building or searching much text or many elements is charged before it is done: none takes ten times
    as long as plain macros. The work is done in C, where calls cannot be counted, so times are compared.
    """
    assert cpu_seconds(_stopped(text)) < 10 * cpu_seconds(_stopped(NESTED), tries=2)


def test_an_error_does_not_hide_an_exhausted_budget() -> None:
    """`||` absorbs errors of evaluation, but not the end of the budget."""
    _stopped(f"({NESTED}) || true")()
    _stopped(f"[1].exists(x, {NESTED}) || true")()


def test_the_expressions_of_a_run_share_its_budget() -> None:
    """Each run takes from the same units, until none are left; a fresh budget has them all again."""
    program = compile("l.all(a, l.all(b, a + b >= 0))", DECLARED)
    budget = CostBudget(2000)
    program.evaluate({"l": TEN}, budget)
    assert 100 < budget.used < 1500
    while budget.left > 100:
        with suppress(CelError):
            program.evaluate({"l": TEN}, budget)
    with pytest.raises(CelError, match="cost limit"):
        program.evaluate({"l": TEN}, budget)
    assert program.evaluate({"l": TEN}, CostBudget(2000)) is True


def test_a_renewed_budget_has_all_units_again() -> None:
    """It counts those of former runs too, also of runs with another budget, and can forget them."""
    program = compile("l.all(a, l.all(b, a + b >= 0))", DECLARED)
    budget = CostBudget(1000)
    program.evaluate({"l": TEN}, budget)
    cost = budget.used
    for run in (2, 3):
        budget.renew()
        assert budget.left == 1000
        program.evaluate({"l": TEN}, budget)
        assert budget.used == run * cost
    budget.add(cost)
    assert budget.used == 4 * cost
    budget.forget(cost)
    assert (budget.left, budget.used) == (1000, cost)


def test_runs_are_polled_by_what_they_cost_together() -> None:
    """A thousand cheap runs take as long as a few dear ones, so that the deadline is checked as often."""
    polls: list[int] = []
    program = compile("l.all(a, l.all(b, a + b >= 0))", DECLARED)
    budget = CostBudget(1000, poll=lambda: polls.append(budget.used))
    for _ in range(1000):
        budget.renew()
        program.evaluate({"l": TEN}, budget)
    assert polls[0] == 0
    assert all(POLL_EVERY <= after - before < POLL_EVERY + 1000 for before, after in pairwise(polls))
    assert budget.used - polls[-1] < POLL_EVERY + 1000


def test_the_same_expression_always_costs_the_same() -> None:
    """The cost depends on the expression and the object alone, not on what ran before."""
    program = compile("l.map(a, string(a)).filter(t, t.matches('[0-4]')).join(',') != ''", DECLARED)

    def cost() -> int:
        budget = CostBudget()
        program.evaluate({"l": TEN}, budget)
        return budget.used

    assert len({cost() for _ in range(5)}) == 1


def test_a_lazy_value_is_charged_to_the_same_budget() -> None:
    """A variable that is evaluated because another expression asks for it spends the request's units."""
    inner = compile("l.all(a, a >= 0)", DECLARED)
    outer = compile("f() && f()", Declarations(functions={"f": _calls(inner, budget := CostBudget(5000))}))
    alone = CostBudget()
    inner.evaluate({"l": TEN}, alone)
    assert outer.evaluate({}, budget) is True
    assert budget.used > 2 * alone.used


def test_the_cost_grows_linearly_with_the_object() -> None:
    """Twice the containers cost twice as much, not four times."""
    program = compile("l.all(c, c.env.all(e, e.size() < 64) && c.name.matches('^[a-z]+$'))", DECLARED)

    def cost(containers: int) -> int:
        budget = CostBudget()
        container = {"name": "main", "env": ["value"] * 10}
        assert program.evaluate({"l": [container] * containers}, budget) is True
        return budget.used

    assert cost(20) - cost(10) == cost(10) - cost(0)


def _calls(program: Program, budget: CostBudget) -> Function:
    return Function(lambda: program.evaluate({"l": TEN}, budget), 0, 0)


def calls_of(remembered: bool) -> tuple[Program, list[Any]]:
    """An expression that calls a host's function on `l`, and the arguments of its calls so far."""
    arguments: list[Any] = []
    functions = {"cost": Function(lambda value: arguments.append(value) or 1, 1, 1, remembered=remembered)}
    return compile(
        "cost(l) + cost(l) == 2", Declarations(variables={"l": None}, functions=functions)
    ), arguments


def test_a_remembered_function_is_called_once_for_a_value_of_a_request() -> None:
    """By all expressions that share the budget, and by those of a budget beside it."""
    program, arguments = calls_of(remembered=True)
    budget = CostBudget()
    for shared in (budget, budget, budget.separate(1000)):
        assert program.evaluate({"l": TEN}, shared) is True
    assert len(arguments) == 1


def test_a_remembered_result_is_for_that_value_alone() -> None:
    """A changed object is another value, even where it is equal, and another request begins anew."""
    program, arguments = calls_of(remembered=True)
    budget = CostBudget()
    for value, shared in ((TEN, budget), (list(TEN), budget), (TEN, CostBudget())):
        assert program.evaluate({"l": value}, shared) is True
    assert len(arguments) == 3


def test_a_value_that_is_gone_lends_its_identity_to_no_other() -> None:
    """The values are kept as long as their results: a new list never has the identity of a former."""
    program, arguments = calls_of(remembered=True)
    budget = CostBudget()
    for number in range(50):
        program.evaluate({"l": [number]}, budget)
    assert arguments == [[number] for number in range(50)]


def test_other_functions_are_called_each_time() -> None:
    """A host's function may depend on more than its arguments."""
    program, arguments = calls_of(remembered=False)
    assert program.evaluate({"l": TEN}, CostBudget()) is True
    assert len(arguments) == 2
