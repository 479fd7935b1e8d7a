"""The closures of macros over lists and maps. The cost of all iterations is charged before the first one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key
from typing import Any, Final

from webhook.cel.syntax.ast import Comprehension
from webhook.cel.values.equality import compare
from webhook.cel.values.errors import CelError, FunctionError
from webhook.cel.values.values import from_key, to_key, type_name

Run = Callable[[list[Any]], Any]


Each = Callable[[list[Any], Any], Iterable[Any]]


def comprehension(
    node: Comprehension, target: Run, slot: int, test: Run | None, result: Run, weight: int
) -> Run:
    """Returns the closure of a macro. The macro's first variable is in `slot`, a second one in the next slot.

    `test`: the condition on elements, None for none. `weight`: the cost of one iteration.
    """
    if len(node.names) == 1:
        each: Each = lambda f, value: _elements(f, value, weight, node)  # noqa: E731
        body, check = result, test
    else:
        each = lambda f, value: _pairs(f, value, weight, node)  # noqa: E731
        body = _unpack(slot, result)
        check = _unpack(slot, test) if test is not None else None
    return _MAKERS[node.kind](target, each, slot, check, body, node)


def _unpack(slot: int, run: Run) -> Run:
    """Returns a closure that runs `run` with the pair in `slot` divided among this slot and the next one.

    The pair is put back afterwards, because both the condition and the result of a macro read it.
    """

    def unpacked(f: list[Any]) -> Any:
        pair = f[slot]
        f[slot], f[slot + 1] = pair
        try:
            return run(f)
        finally:
            f[slot] = pair

    return unpacked


def _elements(f: list[Any], value: Any, weight: int, node: Comprehension) -> Iterable[Any]:
    kind = type(value)
    if kind is list:  # the most frequent case: `Meter.charge`, without the call
        f[1].left -= len(value) * weight
        if f[1].left < 0:
            f[1].stop()
        return value  # type: ignore[no-any-return]
    if isinstance(value, tuple):
        f[1].charge(len(value) * weight)
        return value
    if isinstance(value, Mapping):
        f[1].charge(len(value) * weight)
        return [from_key(key) for key in value]
    raise CelError("evaluation", f"{node.kind} needs a list or a map, not {type_name(value)}", node.pos)


def _pairs(f: list[Any], value: Any, weight: int, node: Comprehension) -> Iterable[Any]:
    if isinstance(value, (list, tuple)):
        f[1].charge(len(value) * weight)
        return enumerate(value)
    if isinstance(value, Mapping):
        f[1].charge(len(value) * weight)
        return [(from_key(key), item) for key, item in value.items()]
    raise CelError("evaluation", f"{node.kind} needs a list or a map, not {type_name(value)}", node.pos)


def _quantifier(target: Run, each: Each, slot: int, body: Run, node: Comprehension, decides: bool) -> Run:
    def run(f: list[Any]) -> Any:
        error: CelError | None = None
        for item in each(f, target(f)):
            f[slot] = item
            try:
                value = body(f)
            except CelError as bad:
                if bad.kind == "budget":
                    raise
                error = error or bad
                continue
            if value is decides:
                return decides
            if value is not True and value is not False:
                error = error or _not_bool(value, node)
        if error is not None:
            raise error
        return not decides

    return run


def _not_bool(value: Any, node: Comprehension) -> CelError:
    return CelError("evaluation", f"{node.kind} needs a bool, not {type_name(value)}", node.pos)


def _truth(value: Any, node: Comprehension) -> bool:
    if value is True or value is False:
        return bool(value)
    raise _not_bool(value, node)


def _all(target: Run, each: Each, slot: int, test: Run | None, body: Run, node: Comprehension) -> Run:
    return _quantifier(target, each, slot, body, node, decides=False)


def _exists(target: Run, each: Each, slot: int, test: Run | None, body: Run, node: Comprehension) -> Run:
    return _quantifier(target, each, slot, body, node, decides=True)


def _exists_one(target: Run, each: Each, slot: int, test: Run | None, body: Run, node: Comprehension) -> Run:
    def run(f: list[Any]) -> bool:
        count = 0
        for item in each(f, target(f)):
            f[slot] = item
            count += _truth(body(f), node)
        return count == 1

    return run


def _filter(target: Run, each: Each, slot: int, test: Run | None, body: Run, node: Comprehension) -> Run:
    def run(f: list[Any]) -> list[Any]:
        kept = []
        for item in each(f, target(f)):
            f[slot] = item
            if _truth(body(f), node):
                kept.append(item)
        return kept

    return run


def _map(target: Run, each: Each, slot: int, test: Run | None, body: Run, node: Comprehension) -> Run:
    def run(f: list[Any]) -> list[Any]:
        out = []
        for item in each(f, target(f)):
            f[slot] = item
            if test is None or _truth(test(f), node):
                f[slot] = item
                out.append(body(f))
        return out

    return run


def _transform_map(
    target: Run, each: Each, slot: int, test: Run | None, body: Run, node: Comprehension
) -> Run:
    def run(f: list[Any]) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for item in each(f, target(f)):
            f[slot] = item
            if test is None or _truth(test(f), node):
                f[slot] = item
                out[to_key(item[0])] = body(f)
        return out

    return run


def _transform_entry(
    target: Run, each: Each, slot: int, test: Run | None, body: Run, node: Comprehension
) -> Run:
    def run(f: list[Any]) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for item in each(f, target(f)):
            f[slot] = item
            if test is not None and not _truth(test(f), node):
                continue
            f[slot] = item
            entries = body(f)
            if not isinstance(entries, Mapping):
                raise CelError("evaluation", f"{node.kind} needs a map, not {type_name(entries)}", node.pos)
            for key, value in entries.items():
                if key in out:
                    raise CelError("evaluation", "a key is inserted twice", node.pos)
                out[key] = value
        return out

    return run


def sort_key(meter: Any) -> Callable[[Any], Any]:
    """Returns a key function for `sorted`, which orders values by CEL's `<`."""
    return cmp_to_key(lambda a, b: -1 if compare(a, b, "<", meter) else int(compare(b, a, "<", meter)))


def _sort_by(target: Run, each: Each, slot: int, test: Run | None, body: Run, node: Comprehension) -> Run:
    def run(f: list[Any]) -> list[Any]:
        keyed = []
        for item in each(f, target(f)):
            f[slot] = item
            keyed.append((body(f), item))
        f[1].charge(len(keyed) * len(keyed).bit_length())
        order = sort_key(f[1])
        try:
            return [item for _, item in sorted(keyed, key=lambda pair: order(pair[0]))]
        except FunctionError as bad:
            raise CelError("evaluation", str(bad), node.pos) from None

    return run


_MAKERS: Final[dict[str, Callable[[Run, Each, int, Run | None, Run, Comprehension], Run]]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entry,
    "sortBy": _sort_by,
}
