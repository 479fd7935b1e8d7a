"""What of a reserved gang's pods matters to others besides amounts: how the kubelet will align them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.alignment import Alignment, Ask
from planner.errors import Where
from planner.podgroup import PodShape
from planner.reading import integer, mapping, maps


@dataclass(frozen=True, slots=True)
class Traits:
    """One pod of a PodSet. `alignment` None: only its devices are known, by the requests."""

    alignment: Alignment | None = None

    def __bool__(self) -> bool:
        return self.alignment is not None


def traits_of(shape: PodShape) -> Traits:
    """The traits of pods of this shape."""
    return Traits(shape.alignment)


def traits_json(traits: Traits) -> dict[str, object]:
    """As plain JSON; `traits_from` reads it back."""
    found: dict[str, object] = {}
    if traits.alignment is not None:
        found["aligned"] = {
            scope: [{"requests": dict(ask.requests), "stays": ask.stays} for ask in asks]
            for scope, asks in (("container", traits.alignment.containers), ("pod", traits.alignment.pod))
        }
    return found


def traits_from(data: Mapping[str, object], where: Where) -> Traits:
    """The traits that `traits_json` wrote. Raises `InputError`, which names the field."""
    aligned = data.get("aligned")
    if aligned is None:
        return Traits()
    scopes = mapping(aligned, where.at(f"{where.field}.aligned"))
    return Traits(Alignment(_asks(scopes, "container", where), _asks(scopes, "pod", where)))


def _asks(scopes: Mapping[str, object], scope: str, where: Where) -> tuple[Ask, ...]:
    at = where.at(f"{where.field}.aligned.{scope}")
    return tuple(
        Ask(
            "",
            {name: integer(amount, at) for name, amount in mapping(entry.get("requests"), at).items()},
            entry.get("stays") is not False,
        )
        for entry in maps(scopes.get(scope), at)
    )
