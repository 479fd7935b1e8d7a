"""The changes of a policy, transferred from an object with defaults to the same object as it was written.

    written: {image: a}      with defaults: {image: a, pull: Always}      mutated: {image: a, pull: Never}

The changes are `pull: Never`, so the result is {image: a, pull: Never}. Defaults that no policy changed are
not written. The changes are computed once and transferred to each of an object's equal templates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from webhook.jsontools.diff import equal

Json = dict[str, Any]


class Changes(Protocol):
    """The changes of a policy to an object with defaults."""

    def applied_to(self, raw: Any) -> Any:
        """Returns `raw`, the object without defaults, with the changes; unchanged parts are shared
        with it.
        """
        ...


def changes_between(before: Any, after: Any) -> Changes | None:
    """Returns the changes from `before` to `after`; None if they are equal."""
    if before is after:
        return None
    if isinstance(before, dict) and isinstance(after, dict):
        return _of_maps(before, after)
    if equal(before, after):
        return None
    if isinstance(before, list) and isinstance(after, list):
        return _of_lists(before, after)
    return _NewValue(after)


def carry(raw: Any, before: Any, after: Any) -> Any:
    """Applies to `raw`, which has no defaults, the changes between `before` and `after`, which have them.

    `before` is `raw` with defaults. Returns the changed object; its unchanged parts are shared with `raw`.
    """
    changes = changes_between(before, after)
    return raw if changes is None else changes.applied_to(raw)


def new_values(changes: Changes) -> Iterator[Any]:
    """Yields the values that the changes write as they are, whatever the object has: new fields, fields that
    got another value, and elements of lists without a counterpart.
    """
    if isinstance(changes, _NewValue):
        yield changes.value
    elif isinstance(changes, _MapChanges):
        for _, inner in changes.changed:
            yield from new_values(inner)
    elif isinstance(changes, _ListChanges):
        for item, (index, element) in zip(changes.after, changes.elements, strict=True):
            if index is None:
                yield item
            elif element is not None:
                yield from new_values(element)


@dataclass(frozen=True, slots=True)
class _NewValue:
    value: Any

    def applied_to(self, raw: Any) -> Any:
        return self.value


@dataclass(frozen=True, slots=True)
class _MapChanges:
    removed: frozenset[str]
    changed: tuple[tuple[str, Changes], ...]

    def applied_to(self, raw: Any) -> Json:
        fields: Json = raw if isinstance(raw, dict) else {}
        result = {key: value for key, value in fields.items() if key not in self.removed}
        for key, changes in self.changed:
            result[key] = changes.applied_to(fields.get(key))
        return result


@dataclass(frozen=True, slots=True)
class _ListChanges:
    """`elements`: for each element of `after`, its index in `before` (None for a new element), and its
    changes (None for no change).
    """

    before: list[Any]
    after: list[Any]
    elements: tuple[tuple[int | None, Changes | None], ...]

    def applied_to(self, raw: Any) -> list[Any]:
        items = raw if isinstance(raw, list) else self.before
        if len(items) != len(self.before):  # then indexes into `before` do not hold for `raw`
            return self.after
        result: list[Any] = []
        for item, (index, changes) in zip(self.after, self.elements, strict=True):
            if index is None:
                result.append(item)
            else:
                result.append(items[index] if changes is None else changes.applied_to(items[index]))
        return result


def _of_maps(before: Json, after: Json) -> Changes | None:
    removed = frozenset(before.keys() - after.keys())
    changed: list[tuple[str, Changes]] = []
    for key, value in after.items():
        changes = changes_between(before[key], value) if key in before else _NewValue(value)
        if changes is not None:
            changed.append((key, changes))
    return _MapChanges(removed, tuple(changed)) if removed or changed else None


def _of_lists(before: list[Any], after: list[Any]) -> Changes:
    """Returns the changes of a list. Of an element that has a counterpart in `before`, only the changes are
    transferred, not the defaults; an element without a counterpart is transferred as it is.

    A counterpart is searched in this order: an equal element with the same name, any element with the same
    name; for elements without a name: an equal element, the element with the same index if both lists have
    the same length.
    """
    left = dict.fromkeys(range(len(before)))
    places: dict[str, list[int]] = {}
    for index, item in enumerate(before):
        if (name := _name(item)) is not None:
            places.setdefault(name, []).append(index)
    elements: list[tuple[int | None, Changes | None]] = []
    for index, item in enumerate(after):
        name = _name(item)
        if name is not None:
            match = _namesake(item, before, [place for place in places.get(name, ()) if place in left])
        else:
            match = _counterpart(item, index, before, after, left)
        if match is None:
            elements.append((None, None))
        else:
            del left[match]
            elements.append((match, changes_between(before[match], item)))
    return _ListChanges(before, after, tuple(elements))


def _name(item: Any) -> str | None:
    """Returns the `name` of an element of a list, such as a container's; None if it has none."""
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def _namesake(item: Any, before: list[Any], namesakes: list[int]) -> int | None:
    """Returns the index of an element of `namesakes` (indexes of elements with the item's name) that equals
    the item, or else the first of them; None if there are none.

    Only elements with the same name can be equal, so no others are compared.
    """
    equals = (place for place in namesakes if equal(before[place], item))
    return next(equals, namesakes[0] if namesakes else None)


def _counterpart(
    item: Any, index: int, before: list[Any], after: list[Any], left: Mapping[int, None]
) -> int | None:
    """Returns the index in `before` of the counterpart of an element without a name, of those that are
    `left`; None if there is none.
    """
    for candidate in left:
        if equal(before[candidate], item):
            return candidate
    return index if len(before) == len(after) and index in left else None
