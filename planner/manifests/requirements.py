"""Reads and writes requirements on labels and fields, in label selectors and node selector terms; reads
tolerations.

Sources: meta/v1 LabelSelector, core/v1 NodeSelectorTerm, core/v1 Toleration.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.manifests.fields import maps, strings, text, texts
from planner.model.errors import InputError, Where
from planner.model.labels import NODE_NAME_FIELD, Requirement, Term, Toleration

SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
"""The operators of a LabelSelector."""

NODE_OPERATORS = (*SELECTOR_OPERATORS, "Gt", "Lt")
"""The operators of a NodeSelectorTerm."""

TOLERATING = ("Equal", "Exists", "Gt", "Lt")
"""The operators of a toleration."""


def selector_from(selector: Mapping[str, object], where: Where) -> Term:
    """Returns a LabelSelector as requirements that must all hold; () for an empty one, which matches
    everything.

    Raises `InputError`.
    """
    labels = texts(selector.get("matchLabels"), where.below("matchLabels"))
    equal = tuple(Requirement(key, "In", (value,)) for key, value in labels.items())
    return equal + _listed(selector, "matchExpressions", where, SELECTOR_OPERATORS)


def node_term_from(term: Mapping[str, object], where: Where) -> Term:
    """Returns a NodeSelectorTerm; a requirement with the key `metadata.name` applies to the node's name.

    Raises `InputError`.
    """
    expressions = _listed(term, "matchExpressions", where, NODE_OPERATORS)
    fields = _listed(term, "matchFields", where, NODE_OPERATORS)
    for index, requirement in enumerate(fields):
        if requirement.key != NODE_NAME_FIELD:
            raise InputError(
                f"matchFields knows only {NODE_NAME_FIELD}", where.below(f"matchFields[{index}].key")
            )
    return expressions + fields


def requirement_from(entry: Mapping[str, object], where: Where, operators: tuple[str, ...]) -> Requirement:
    """Returns a requirement with one of these operators. Raises `InputError`."""
    operator = text(entry.get("operator"), where.below("operator"))
    if operator not in operators:
        raise InputError(
            f"{operator!r} is no operator; use one of {', '.join(operators)}", where.below("operator")
        )
    key = text(entry.get("key"), where.below("key"))
    return Requirement(key, operator, strings(entry.get("values"), where.below("values")))


def _listed(
    selector: Mapping[str, object], field: str, where: Where, operators: tuple[str, ...]
) -> tuple[Requirement, ...]:
    entries = maps(selector.get(field), where.below(field))
    return tuple(
        requirement_from(entry, where.below(f"{field}[{index}]"), operators)
        for index, entry in enumerate(entries)
    )


def requirement_json(requirement: Requirement) -> dict[str, object]:
    """Returns the requirement as Kubernetes writes it; without `values` if the operator takes none."""
    stated = {"key": requirement.key, "operator": requirement.operator}
    return {**stated, "values": list(requirement.values)} if requirement.values else {**stated}


def node_term_json(term: Term) -> dict[str, list[dict[str, object]]]:
    """Returns a NodeSelectorTerm: requirements on the node's name as `matchFields`, all others as
    `matchExpressions`.
    """
    split = {
        "matchExpressions": [requirement_json(r) for r in term if r.key != NODE_NAME_FIELD],
        "matchFields": [requirement_json(r) for r in term if r.key == NODE_NAME_FIELD],
    }
    return {kind: stated for kind, stated in split.items() if stated}


def _tolerating(entry: Mapping[str, object], place: Where) -> str:
    operator = text(entry.get("operator"), place) or "Equal"
    if operator not in TOLERATING:
        raise InputError(f"{operator!r} is no operator; use one of {', '.join(TOLERATING)}", place)
    return operator


def tolerations_of(spec: Mapping[str, object], where: Where) -> tuple[Toleration, ...]:
    """Returns the tolerations in the spec of a pod or of a ResourceFlavor. Raises `InputError`."""
    place = where.below("tolerations")
    return tuple(
        Toleration(
            key=text(entry.get("key"), place.below(f"[{index}].key")),
            operator=_tolerating(entry, place.below(f"[{index}].operator")),
            value=text(entry.get("value"), place.below(f"[{index}].value")),
            effect=text(entry.get("effect"), place.below(f"[{index}].effect")),
        )
        for index, entry in enumerate(maps(spec.get("tolerations"), place))
    )
