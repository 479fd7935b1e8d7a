"""The closures of operators. For speed, each checks the most frequent types first, then the other types that
the CEL specification allows.

The function for an operator returns its closure; `pos` is the offset in the text, for errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from webhook.cel.compiler import select
from webhook.cel.values.equality import compare, contains, equals
from webhook.cel.values.errors import CelError, FunctionError
from webhook.cel.values.temporal import add_times, subtract_times
from webhook.cel.values.types import BOOL, DYN, NUMBERS, Type
from webhook.cel.values.values import ABSENT, INT_MAX, INT_MIN, UINT_MAX, Optional, UInt, type_name

Run = Callable[[list[Any]], Any]


_TIMES: Final = frozenset({"google.protobuf.Timestamp", "google.protobuf.Duration"})


_ORDERED: Final = frozenset({"string", "bool", "bytes", *_TIMES})


# Comparing values of two of these types is a mistake. `null` may be compared to any.
_COMPARED: Final = frozenset({"int", "uint", "double", "string", "bool", "bytes", "list", "map", *_TIMES})


_ADDABLE: Final = frozenset({"int", "uint", "double", "string", "bytes", "list"})


def result_type(op: str, left: Type, right: Type) -> Type | None:
    """Returns the type of `left op right`; None if the operator is not defined for these types."""
    a, b = left.name, right.name
    if op in ("==", "!="):
        return None if _distinct(a, b) else BOOL
    if op == "in":
        never = b == "list" and _distinct(a, right.element.name)
        return BOOL if b in ("dyn", "list", "map") and not never else None
    if op in ("<", "<=", ">", ">="):
        names = {a, b} - {"dyn"}
        return BOOL if names <= NUMBERS or (len(names) == 1 and names <= _ORDERED) else None
    return _arithmetic_type(op, left, right)


def _distinct(a: str, b: str) -> bool:
    """Reports whether values of these types are not compared for equality: the API server's checker (cel-go)
    refuses `1 == 1.0` too, although it has `1 < 1.5`."""
    return a != b and a in _COMPARED and b in _COMPARED


def _arithmetic_type(op: str, left: Type, right: Type) -> Type | None:
    a, b = left.name, right.name
    allowed = _ADDABLE if op == "+" else frozenset({"int", "uint"}) if op == "%" else NUMBERS
    types = {a, b} - {"dyn"}
    if op in "+-" and types and types <= _TIMES:
        return DYN
    if len(types) > 1 or not types <= allowed:
        return None
    if "dyn" in (a, b):
        return Type(types.pop()) if types and op != "+" and op != "-" else DYN
    return left if left == right else Type(a)  # lists with different element types give a list of any type


def local(slot: int) -> Run:
    """Reads a macro's variable from its slot."""
    return lambda f: f[slot]


def variable(name: str, pos: int) -> Run:
    """Reads a variable of the bindings at evaluation, so that a lazy value is computed only if needed."""

    def run(f: list[Any]) -> Any:
        try:
            return f[0][name]
        except KeyError:
            raise CelError("evaluation", f"no value for {name}", pos) from None

    return run


def has(operand: Run, name: str, pos: int) -> Run:
    """`has(operand.name)`."""

    def run(f: list[Any]) -> bool:
        value = operand(f)
        if type(value) is dict and name in value:
            return True
        return select.has(value, name, pos)

    return run


def has_optional(operand: Run, name: str, pos: int) -> Run:
    """`has(operand.?name)`."""
    return lambda f: select.optional_select(operand(f), name, pos).present


def optional_select(operand: Run, name: str, pos: int) -> Run:
    """`operand.?name`."""

    def run(f: list[Any]) -> Any:
        value = operand(f)
        if type(value) is Optional and value.present:
            value = value.value
        if type(value) is dict and name in value:
            return Optional(value[name])
        return select.optional_select(value, name, pos)

    return run


def optional_or(left: Run, right: Run, name: str, pos: int) -> Run:
    """`left.or(right)` and `left.orValue(right)`; the right side is evaluated only if it is needed."""

    def run(f: list[Any]) -> Any:
        value = left(f)
        if not isinstance(value, Optional):
            raise CelError("evaluation", f"no overload of {name} for ({type_name(value)})", pos)
        if value.present:
            return value if name == "or" else value.value
        other = right(f)
        if name == "or" and not isinstance(other, Optional):
            raise CelError("evaluation", f"or() needs an optional, not {type_name(other)}", pos)
        return other

    return run


def optional_map(target: Run, slot: int, body: Run, flat: bool, pos: int) -> Run:
    """`target.optMap(name, body)` and optFlatMap."""

    def run(f: list[Any]) -> Any:
        value = target(f)
        if not isinstance(value, Optional):
            raise CelError("evaluation", f"{type_name(value)} is not optional", pos)
        if not value.present:
            return ABSENT
        f[slot] = value.value
        result = body(f)
        if not flat:
            return Optional(result)
        if not isinstance(result, Optional):
            raise CelError("evaluation", f"optFlatMap() needs an optional, not {type_name(result)}", pos)
        return result

    return run


def bind(value: Run, slot: int, body: Run) -> Run:
    """`cel.bind(name, value, body)`."""

    def run(f: list[Any]) -> Any:
        f[slot] = value(f)
        return body(f)

    return run


def logic(conjunction: bool, terms: list[Run], pos: int) -> Run:
    """`&&` or `||`. An operand that decides the result takes precedence over an error in another operand.

    Operands after a deciding one are not evaluated.
    """
    decides = not conjunction
    neutral = conjunction

    def run(f: list[Any]) -> Any:
        error: CelError | None = None
        for term in terms:
            try:
                value = term(f)
            except CelError as bad:
                if bad.kind == "budget":
                    raise
                error = error or bad
                continue
            if value is decides:
                return decides
            if value is not neutral:
                error = error or CelError("evaluation", f"bool expected, not {type_name(value)}", pos)
        if error is not None:
            raise error
        return neutral

    return run


def conditional(condition: Run, then: Run, otherwise: Run, pos: int) -> Run:
    """`condition ? then : otherwise`."""

    def run(f: list[Any]) -> Any:
        value = condition(f)
        if value is True:
            return then(f)
        if value is False:
            return otherwise(f)
        raise CelError("evaluation", f"a condition must be bool, not {type_name(value)}", pos)

    return run


def negate(operand: Run, pos: int) -> Run:
    """`!x`."""

    def run(f: list[Any]) -> bool:
        value = operand(f)
        if value is True:
            return False
        if value is False:
            return True
        raise CelError("evaluation", f"no overload of ! for ({type_name(value)})", pos)

    return run


def minus(operand: Run, pos: int) -> Run:
    """`-x`."""

    def run(f: list[Any]) -> Any:
        value = operand(f)
        if type(value) is float:
            return -value
        if type(value) is not int:
            raise CelError("evaluation", f"no overload of - for ({type_name(value)})", pos)
        if value == INT_MIN:
            raise CelError("evaluation", "integer overflow", pos)
        return -value

    return run


def equality(op: str, left: Run, right: Run, left_constant: Any, right_constant: Any) -> Run:
    """`==` or `!=`. Comparison with a constant string is done by Python, because no other type equals it."""
    if type(left_constant) is str:
        left, right, right_constant = right, left, left_constant
    if type(right_constant) is str:
        text = right_constant
        return (lambda f: left(f) == text) if op == "==" else (lambda f: left(f) != text)
    if op == "==":
        return lambda f: equals(left(f), right(f), f[1])
    return lambda f: not equals(left(f), right(f), f[1])


def membership(left: Run, right: Run, right_constant: Any, pos: int) -> Run:
    """`left in right`. For a constant list of strings, a set is used."""
    strings = isinstance(right_constant, list) and all(type(item) is str for item in right_constant)
    members = frozenset(right_constant) if strings else frozenset()

    def run(f: list[Any]) -> bool:
        value = left(f)
        if strings and type(value) is str:
            return value in members
        try:
            return contains(value, right(f), f[1])
        except FunctionError as bad:
            raise CelError("evaluation", str(bad), pos) from None

    return run


def ordering(op: str, left: Run, right: Run, pos: int) -> Run:
    """`<`, `<=`, `>`, `>=`."""

    def run(f: list[Any]) -> bool:
        try:
            return compare(left(f), right(f), op, f[1])
        except FunctionError as bad:
            raise CelError("evaluation", str(bad), pos) from None

    return run


def arithmetic(op: str, left: Run, right: Run, pos: int) -> Run:
    """`+`, `-`, `*`, `/`, `%`."""
    apply = _ARITHMETIC[op]

    def run(f: list[Any]) -> Any:
        a = left(f)
        b = right(f)
        try:
            if type(a) is not type(b):
                return _mixed(op, a, b)
            if op == "+" and type(a) in (str, list, bytes):
                size = len(a) + len(b)
                if size > 100:
                    f[1].charge(size // 10)
            return apply(a, b)
        except FunctionError as bad:
            raise CelError("evaluation", str(bad), pos) from None

    return run


def _mixed(op: str, a: Any, b: Any) -> Any:
    if op == "+":
        return add_times(a, b)
    if op == "-":
        return subtract_times(a, b)
    raise FunctionError(f"no overload of {op} for ({type_name(a)}, {type_name(b)})")


def _ranged(value: int, kind: type) -> Any:
    if kind is int:
        if INT_MIN <= value <= INT_MAX:
            return value
    elif 0 <= value <= UINT_MAX:
        return UInt(value)
    raise FunctionError("integer overflow")


def add(a: Any, b: Any) -> Any:
    """Returns `a + b` for two values of one type. Raises FunctionError if there is no sum."""
    kind = type(a)
    if kind is int or kind is UInt:
        return _ranged(int(a) + int(b), kind)
    if kind in (str, float, list, bytes):
        return a + b
    return add_times(a, b)


def _subtract(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is int or kind is UInt:
        return _ranged(int(a) - int(b), kind)
    return a - b if kind is float else subtract_times(a, b)


def _multiply(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is int or kind is UInt:
        return _ranged(int(a) * int(b), kind)
    if kind is float:
        return a * b
    raise FunctionError(f"no overload of * for ({type_name(a)}, {type_name(b)})")


def _divide(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is float:
        if b == 0:
            return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
        return a / b
    if kind is not int and kind is not UInt:
        raise FunctionError(f"no overload of / for ({type_name(a)}, {type_name(b)})")
    if b == 0:
        raise FunctionError("division by zero")
    quotient = abs(int(a)) // abs(int(b))
    return _ranged(quotient if (a < 0) == (b < 0) else -quotient, kind)


def _modulo(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is not int and kind is not UInt:
        raise FunctionError(f"no overload of % for ({type_name(a)}, {type_name(b)})")
    if b == 0:
        raise FunctionError("modulus by zero")
    if a == INT_MIN and b == -1:  # the quotient overflows, so Kubernetes' engine has no remainder either
        raise FunctionError("integer overflow")
    rest = abs(int(a)) % abs(int(b))
    return _ranged(-rest if a < 0 else rest, kind)


_ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _modulo,
}
