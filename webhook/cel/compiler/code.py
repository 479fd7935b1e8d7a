"""The compiled form of a node, the scope of macro variables, and the folding of constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.cel.values import types
from webhook.cel.values.budget import Meter
from webhook.cel.values.errors import CelError, FunctionError
from webhook.cel.values.types import DYN, Type
from webhook.cel.values.values import CelType, UInt

Run = Callable[[list[Any]], Any]


UNSET: Final = object()
"""The `constant` of a code whose value is not known before evaluation."""


FIRST_SLOT: Final = 2  # index in a frame; the bindings and the meter come before it


@dataclass(slots=True)
class Code:
    """A compiled node.

    `constant`: its value if it is known before evaluation, else `UNSET`. `path`: the dotted path
    ("plan.nodes") if the node is a variable or a constant path below one, else None.
    """

    run: Run
    type: Type = DYN
    constant: Any = UNSET
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """The macro variables that an expression may read: slot and type by name. `depth`: their number."""

    names: Mapping[str, tuple[int, Type]] = field(default_factory=dict)
    depth: int = 0

    def bind(self, *variables: tuple[str, Type]) -> Scope:
        """Returns a scope with additional variables, each in a slot of its own."""
        names = dict(self.names)
        for offset, (name, kind) in enumerate(variables):
            names[name] = (FIRST_SLOT + self.depth + offset, kind)
        return Scope(names, self.depth + len(variables))


def constant(value: Any) -> Code:
    """Returns the code of a constant."""
    return Code(lambda _: value, types.of_value(value), value)


_FOLDED: Final = (str, int, float, bool, bytes, type(None), CelType, UInt)


def fold(code: Code, operands: list[Code]) -> Code:
    """Returns the code as a constant if all its operands are constants; else the code as it is.

    The value is computed here, once. If this fails or costs more than 10,000 units, or if the value is
    neither a scalar nor a list of scalars, the code is returned as it is, and computed in each evaluation: a
    policy with an expensive constant can still be loaded.
    """
    if any(operand.constant is UNSET for operand in operands):
        return code
    try:
        value = code.run([{}, Meter(10_000)])
    except (CelError, FunctionError):
        return code
    if isinstance(value, list) and all(isinstance(item, _FOLDED) for item in value):
        return Code(lambda _: value, code.type, value)
    return Code(lambda _: value, types.of_value(value), value) if isinstance(value, _FOLDED) else code
