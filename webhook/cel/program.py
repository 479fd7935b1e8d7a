"""Compiles an expression to a `Program`, which can be evaluated any number of times, from any thread."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any, Final

from webhook.cel.compiler.code import Code, Scope
from webhook.cel.compiler.compiler import Compiler
from webhook.cel.compiler.declarations import Declarations
from webhook.cel.libraries import table
from webhook.cel.syntax.grammar import parse
from webhook.cel.values.budget import CostBudget, Meter
from webhook.cel.values.errors import CelError, Origin
from webhook.cel.values.stand_in import StandIn
from webhook.cel.values.temporal import format_duration, format_timestamp
from webhook.cel.values.values import (
    BoolKey,
    Duration,
    JSONPatch,
    Optional,
    Timestamp,
    UInt,
    from_key,
    type_name,
)

# Maximum cost of one `to_json`, in cost units: an element costs 1, a string a tenth of its length. Enough for
# any text in a request, which has at most 3 MiB.
RESULT_LIMIT: Final = 500_000


class Program:
    """A compiled expression; immutable.

    `references`: the variables that the expression names. `reads`: the constant paths that it reads, such as
    "plan.nodes", and `references`. `wholes`: the variables that it uses as a whole, not only by their fields.
    """

    __slots__ = (
        "_run",
        "_slots",
        "_weight",
        "origin",
        "reads",
        "references",
        "result_type",
        "text",
        "wholes",
    )

    def __init__(self, text: str, origin: Origin | None, code: Code, compiler: Compiler, weight: int) -> None:
        self.text = text
        self.origin = origin
        self.result_type = code.type.name
        self.references: frozenset[str] = frozenset(compiler.references)
        self.reads: frozenset[str] = frozenset(compiler.reads | compiler.references)
        self.wholes: frozenset[str] = frozenset(compiler.wholes)
        self._run = code.run
        self._slots = compiler.slots
        self._weight = weight

    def evaluate(self, bindings: Mapping[str, object], budget: CostBudget | None = None) -> Any:
        """Returns the expression's value. Raises CelError for an error in it or an exceeded budget.

        `bindings` is asked for a name only when the expression needs it. Values are not copied, so the result
        may be a part of the bindings.
        """
        budget = budget or CostBudget()
        meter = None
        try:
            meter = budget.open()
            meter.left -= self._weight
            return self._run([bindings, meter, *[None] * self._slots])
        except CelError as bad:
            raise bad.locate(self.text, self.origin) from None
        except RecursionError:
            raise CelError("budget", "a value is nested too deeply", 0, self.text, self.origin) from None
        except (ArithmeticError, ValueError, TypeError, LookupError) as bad:
            # A binding that is not valid JSON, such as an integer of 400 digits, must not crash the caller.
            message = f"evaluation failed ({type(bad).__name__})"
            raise CelError("evaluation", message, 0, self.text, self.origin) from None
        finally:
            if meter is not None:
                budget.close(meter)

    def __repr__(self) -> str:
        return f"Program({self.text[:60]!r})"


def compile(text: str, declared: Declarations, *, origin: Origin | None = None) -> Program:
    """Returns the program of an expression. Raises CelError of kind "syntax", "undeclared" or "type"."""
    try:
        tree = parse(text)
        compiler = Compiler(declared, table(declared.libraries, declared.mutations))
        code = compiler.compile(tree, Scope())
    except CelError as bad:
        raise bad.locate(text, origin) from None
    except RecursionError:
        raise CelError("syntax", "expression is nested too deeply", 0, text, origin) from None
    return Program(text, origin, code, compiler, tree.weight)


def to_json(value: Any) -> Any:
    """Returns a result as plain JSON: objects are dicts, times RFC 3339 text, durations seconds, bytes
    base64.

    Lists and maps are copied. An absent optional is null, and left out of a list or map. Raises CelError of
    kind "type" for a value without a JSON form, such as a type, and of kind "budget" for a result that would
    be too large: its parts may be shared in memory, but not in JSON.
    """
    try:
        return _json(value, Meter(RESULT_LIMIT))
    except RecursionError:
        raise CelError("budget", "the result is nested too deeply") from None


def _json(value: Any, meter: Meter) -> Any:
    kind = type(value)
    if kind is str:
        meter.charge(1 + len(value) // 10)
        return value
    if kind is float and not math.isfinite(value):
        raise CelError("type", f"{value} has no JSON form")
    if kind in (int, bool, float, type(None), StandIn):  # a stand-in is copied, not read
        return value
    if isinstance(value, Mapping):
        meter.charge(1 + len(value))
        kept = ((key, item) for key, item in value.items() if not _absent(item))
        return {_json_key(key): _json(item, meter) for key, item in kept}
    if isinstance(value, (list, tuple)):
        meter.charge(1 + len(value))
        return [_json(item, meter) for item in value if not _absent(item)]
    if isinstance(value, Optional):
        return _json(value.value, meter) if value.present else None
    if isinstance(value, JSONPatch):
        members = {"op": value.op, "path": value.path, "from": value.source}
        patch: dict[str, Any] = {name: text for name, text in members.items() if text or name != "from"}
        return {**patch, "value": _json(value.value, meter)} if value.has_value else patch
    return _rare_json(value)


def _absent(value: Any) -> bool:
    return type(value) is Optional and not value.present


def _json_key(key: Any) -> str:
    if type(key) is BoolKey:
        return "true" if key.value else "false"
    return key if type(key) is str else str(from_key(key))


def _rare_json(value: Any) -> Any:
    if isinstance(value, UInt):
        return int(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Timestamp):
        return format_timestamp(value)
    if isinstance(value, Duration):
        return format_duration(value)
    raise CelError("type", f"a {type_name(value)} has no JSON form")
