"""Typed reading of untyped documents: each function returns the value, or raises an error that names the
field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

import yaml

from planner.model.errors import InputError, Where

T = TypeVar("T")


class CachedDocument(dict[str, object]):
    """A document that caches what `read_cached` returned for it: some documents are read repeatedly."""

    __slots__ = ("value",)

    def __init__(self, document: Mapping[str, object]) -> None:
        super().__init__(document)
        self.value: object = None


def yaml_text(content: str, where: Where) -> object:
    """Parses a text inside an object, for example in a ConfigMap, as YAML. Raises `InputError` if it is not
    YAML.
    """
    try:
        return yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, LookupError, RecursionError) as error:  # LookupError: `!!int ""`
        raise InputError("is no YAML", where) from error


def read_cached(
    item: Mapping[str, object], where: Where, read: Callable[[Mapping[str, object], Where], T]
) -> T:
    """Returns the result of `read`, cached if the document is a `CachedDocument`."""
    if not isinstance(item, CachedDocument):
        return read(item, where)
    if item.value is None:
        item.value = read(item, where)
    return cast(T, item.value)


def mapping(value: object, where: Where) -> Mapping[str, object]:
    """Returns a mapping; null and missing are empty. Raises `InputError` for anything else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"expected a mapping, found {type_in_words(value)}", where)
    return value


def sequence(value: object, where: Where) -> Sequence[object]:
    """Returns a list; null and missing are empty. Raises `InputError` for anything else."""
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)):
        raise InputError(f"expected a list, found {type_in_words(value)}", where)
    return value


def maps(value: object, where: Where) -> list[Mapping[str, object]]:
    """Returns a list of mappings; null and missing are empty. Raises `InputError` for anything else."""
    result: list[Mapping[str, object]] = []
    for index, item in enumerate(sequence(value, where)):
        if not isinstance(item, Mapping):
            raise InputError(f"expected a mapping, found {type_in_words(item)}", where.below(f"[{index}]"))
        result.append(item)
    return result


def text(value: object, where: Where) -> str:
    """Returns a string; null and missing are "". Raises `InputError` for anything else."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"expected a string, found {type_in_words(value)}; put it in quotes", where)
    return value


def strings(value: object, where: Where) -> tuple[str, ...]:
    """Returns a list of strings; null and missing are empty. Raises `InputError` for anything else."""
    return tuple(text(item, where.below(f"[{index}]")) for index, item in enumerate(sequence(value, where)))


def texts(value: object, where: Where) -> dict[str, str]:
    """Returns a mapping of strings (labels, annotations, selectors). Raises `InputError` for
    anything else.
    """
    return {
        text(key, where): text(item, where.below(f"{key}")) for key, item in mapping(value, where).items()
    }


def qualified_name(metadata: Mapping[str, object], where: Where) -> str:
    """Returns NAMESPACE/NAME, with "default" for an object without a namespace; `where`: the object. Raises
    `InputError` for a namespace that is no string.
    """
    namespace = text(metadata.get("namespace"), where.at_path("metadata.namespace"))
    return f"{namespace or 'default'}/{metadata['name']}"


def integer(value: object, where: Where) -> int:
    """Returns a whole number; null and missing are 0. Raises `InputError` for anything else."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"expected a whole number, found {type_in_words(value)}", where)
    return value


def type_in_words(value: object) -> str:
    """Returns the type of a value, and a scalar's value, for messages: "the string 'x'", "a list", "null"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, str):
        return f"the string {(value if len(value) <= 30 else value[:29] + '…')!r}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return "a list" if isinstance(value, (list, tuple)) else "a mapping"
