"""Functions: overloads by name and types, and the closures of calls, which choose an overload.

Signatures of overloads are text: `<string>.charAt(int) -> string` is called on a string (the *receiver*),
`sets.contains(list, list) -> bool` has no receiver. Types have CEL's names; `dyn` is any type, `a|b` one of
two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from webhook.cel.values.budget import Meter
from webhook.cel.values.errors import CelError, FunctionError
from webhook.cel.values.types import Type, accepts
from webhook.cel.values.values import type_name

Implementation = Callable[..., Any]


_SIGNATURE: Final = re.compile(r"(?:<([^>]+)>\.)?([\w.]+)\(([^)]*)\) -> (\S+)")


@dataclass(frozen=True, slots=True)
class Function:
    """A function that the host registers: a callable over plain values, with its number of arguments.

    `receiver`: it is called as `a.name(b)`, and `a` counts as an argument. It may raise ValueError with a
    short message, which users see. `remembered`: expressions that share a budget and pass the same values (by
    identity) share the result, because computing it is expensive.
    """

    call: Implementation
    min_args: int
    max_args: int
    receiver: bool = False
    result: str = "dyn"
    remembered: bool = False


@dataclass(frozen=True, slots=True)
class Overload:
    """An implementation of a function. `metered`: it gets the Meter before its arguments."""

    name: str
    receiver: bool
    params: tuple[str, ...]
    result: str
    call: Implementation
    metered: bool = False


def overload(signature: str, call: Implementation, *, metered: bool = False) -> Overload:
    """Returns an overload by its signature. Raises ValueError for a malformed signature."""
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ValueError(f"bad signature {signature}")
    receiver, name, params, result = match.groups()
    types = [part.strip() for part in params.split(",") if part.strip()]
    if receiver:
        types.insert(0, receiver)
    return Overload(name, bool(receiver), tuple(types), result, call, metered)


def scanning(signature: str, call: Implementation, flat: int = 0) -> Overload:
    """Returns an overload whose cost is `flat` plus a tenth of its first argument's length."""

    def metered(meter: Meter, *args: Any) -> Any:
        first = args[0]
        meter.charge(flat + (len(first) // 10 if isinstance(first, (str, bytes)) else 0))
        return call(*args)

    return overload(signature, metered, metered=True)


class Table:
    """All library functions that an expression may call."""

    __slots__ = ("_by_shape", "_names")

    def __init__(self, overloads: Iterable[Overload]) -> None:
        self._by_shape: dict[tuple[str, bool, int], list[Overload]] = {}
        self._names: set[tuple[str, bool]] = set()
        for entry in overloads:
            self._by_shape.setdefault((entry.name, entry.receiver, len(entry.params)), []).append(entry)
            self._names.add((entry.name, entry.receiver))

    def has(self, name: str, receiver: bool) -> bool:
        """Returns whether there is a function of this name, with any number of arguments."""
        return (name, receiver) in self._names

    def names(self, receiver: bool) -> list[str]:
        """Returns the names of all functions with a receiver, or of all without one."""
        return sorted(name for name, style in self._names if style == receiver)

    def find(self, name: str, receiver: bool, count: int) -> list[Overload]:
        """Returns the overloads of a name and number of arguments (a receiver counts as one)."""
        return self._by_shape.get((name, receiver, count), [])

    def counts(self, name: str, receiver: bool) -> list[int]:
        """Returns the numbers of arguments that the function accepts, without the receiver, in order."""
        shapes = [n for (function, style, n) in self._by_shape if function == name and style == receiver]
        return sorted(n - receiver for n in shapes)


def possible(overloads: list[Overload], types: list[Type]) -> list[Overload]:
    """Returns the overloads that accept arguments of these static types."""
    return [
        entry
        for entry in overloads
        if all(accepts(param, argument) for param, argument in zip(entry.params, types, strict=True))
    ]


class Dispatcher:
    """Chooses an overload by the arguments' Python types, and caches the choice for these types."""

    __slots__ = ("_chosen", "metered", "name", "overloads")

    def __init__(self, name: str, overloads: list[Overload]) -> None:
        self.name = name
        self.overloads = overloads
        self.metered = any(entry.metered for entry in overloads)
        self._chosen: dict[tuple[type, ...], Implementation] = {}

    def choose(self, *args: Any) -> Implementation:
        """Returns the implementation for these arguments. Raises FunctionError if there is none."""
        key = tuple(map(type, args))
        overload = self._chosen.get(key)
        if overload is None:
            overload = self._search(args)
            self._chosen[key] = overload
        return overload

    def _search(self, args: tuple[Any, ...]) -> Implementation:
        types = [Type(_dispatch_name(arg)) for arg in args]
        matching = possible(self.overloads, types)
        if not matching:
            raise FunctionError(
                f"no overload of {self.name} for ({', '.join(type_name(arg) for arg in args)})"
            )
        entry = matching[0]
        # `caller` passes the meter to all overloads if one of them is metered.
        if self.metered and not entry.metered:
            plain = entry.call
            return lambda _, *args: plain(*args)
        return entry.call


def _dispatch_name(value: Any) -> str:
    name = type_name(value)
    return "map" if isinstance(value, dict) else name


def caller(
    dispatcher: Dispatcher, args: list[Callable[[list[Any]], Any]], pos: int
) -> Callable[[list[Any]], Any]:
    """Returns the closure of a library function's call; calls with one or two arguments are the fast path."""
    chosen, choose, metered = dispatcher._chosen, dispatcher.choose, dispatcher.metered
    if not metered and len(args) == 1:
        (only,) = args

        def call1(f: list[Any]) -> Any:
            a = only(f)
            try:
                return (chosen.get((type(a),)) or choose(a))(a)
            except CelError:
                raise
            except Exception as bad:
                raise failure(dispatcher.name, bad, pos) from None

        return call1
    if not metered and len(args) == 2:
        first, second = args

        def call2(f: list[Any]) -> Any:
            a = first(f)
            b = second(f)
            try:
                return (chosen.get((type(a), type(b))) or choose(a, b))(a, b)
            except CelError:
                raise
            except Exception as bad:
                raise failure(dispatcher.name, bad, pos) from None

        return call2

    def call(f: list[Any]) -> Any:
        values = [arg(f) for arg in args]
        meter: Meter = f[1]
        try:
            implementation = chosen.get(tuple(map(type, values))) or choose(*values)
            return implementation(meter, *values) if metered else implementation(*values)
        except CelError:
            raise
        except Exception as bad:
            raise failure(dispatcher.name, bad, pos) from None

    return call


def failure(name: str, bad: Exception, pos: int) -> CelError:
    """Returns the error of a failed call: a FunctionError's message, else only the function's name.

    Raises a RecursionError again.
    """
    if isinstance(bad, FunctionError):
        return CelError("evaluation", str(bad), pos)
    if isinstance(bad, RecursionError):
        raise bad
    return CelError("evaluation", f"{name} failed", pos)


def host_caller(
    name: str, function: Function, args: list[Callable[[list[Any]], Any]], pos: int
) -> Callable[[list[Any]], Any]:
    """Returns the closure of a call of a function of the host."""
    call, remembered = function.call, function.remembered

    def run(f: list[Any]) -> Any:
        values = [arg(f) for arg in args]
        try:
            return f[1].remember(call, values) if remembered else call(*values)
        except CelError:
            raise
        except (ValueError, FunctionError) as bad:
            raise CelError("evaluation", f"{name}: {bad}"[:300], pos) from None
        except Exception as bad:
            raise failure(name, bad, pos) from None

    return run
