"""What of a reserved gang's pods matters to others besides amounts: labels, anti-affinity, NUMA alignment,
and what their device claims ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.alignment import Alignment, Ask
from planner.bundles import Bundle, bundle_from, bundle_json
from planner.errors import Where
from planner.podgroup import PodShape, PodTerm
from planner.podterms import terms_from, terms_json
from planner.reading import integer, mapping, maps, texts


@dataclass(frozen=True, slots=True)
class Traits:
    """One pod of a PodSet. `alignment` None: only its devices are known, by the requests. `terms`: its
    required anti-affinity."""

    alignment: Alignment | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    terms: tuple[PodTerm, ...] = ()
    bundles: tuple[Bundle, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.alignment or self.labels or self.terms or self.bundles)


def traits_of(shape: PodShape) -> Traits:
    """The traits of pods of this shape."""
    guards = tuple(term for term in shape.terms if not term.attracts)
    return Traits(shape.alignment or None, shape.labels, guards, shape.bundles)


def traits_json(traits: Traits) -> dict[str, object]:
    """As plain JSON; `traits_from` reads it back."""
    found: dict[str, object] = {}
    if traits.alignment is not None:
        found["aligned"] = {
            scope: [{"requests": dict(ask.requests), "stays": ask.stays} for ask in asks]
            for scope, asks in (("container", traits.alignment.containers), ("pod", traits.alignment.pod))
        }
    if traits.labels:
        found["labels"] = dict(sorted(traits.labels.items()))
    if traits.terms:
        found["antiAffinity"] = terms_json(traits.terms)
    if traits.bundles:
        found["claims"] = [bundle_json(bundle) for bundle in traits.bundles]
    return found


def traits_from(data: Mapping[str, object], where: Where) -> Traits:
    """The traits that `traits_json` wrote. Raises `InputError`, which names the field."""
    labels = texts(data.get("labels"), where.at(f"{where.field}.labels"))
    terms = tuple(terms_from(data.get("antiAffinity"), where.at(f"{where.field}.antiAffinity")))
    at = where.at(f"{where.field}.claims")
    bundles = tuple(bundle_from(one, at) for one in maps(data.get("claims"), at))
    if data.get("aligned") is None:
        return Traits(None, labels, terms, bundles)
    scopes = mapping(data["aligned"], where.at(f"{where.field}.aligned"))
    alignment = Alignment(_asks(scopes, "container", where), _asks(scopes, "pod", where))
    return Traits(alignment, labels, terms, bundles)


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
