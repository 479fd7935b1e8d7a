"""Required pod affinity and anti-affinity, read from a pod's spec, and which pods a term means. Pure.

Source: core/v1 PodAffinityTerm and kube-scheduler's InterPodAffinity. A term means the pods that its
labelSelector selects (none where it has no selector) in its namespaces: the pod's own where neither
`namespaces` nor `namespaceSelector` says otherwise. Of a namespace only the name is known here: a selector
over anything but `kubernetes.io/metadata.name` is taken to mean every namespace. `matchLabelKeys` and
`mismatchLabelKeys` add the pod's own values of those labels it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.errors import InputError, Where
from planner.match import holds
from planner.podgroup import PodTerm, Requirement, Term
from planner.reading import mapping, maps, strings, text, texts

_NAME = "kubernetes.io/metadata.name"
_NOBODY = (Requirement("", "In"),)
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def terms_of(affinity: Mapping[str, object], labels: Mapping[str, str], where: Where) -> tuple[PodTerm, ...]:
    """The required terms of a pod with these labels; `where` names its `affinity`. Raises `InputError`."""
    found: list[PodTerm] = []
    for field, attracts in (("podAffinity", True), ("podAntiAffinity", False)):
        at = where.at(f"{where.field}.{field}.requiredDuringSchedulingIgnoredDuringExecution")
        part = mapping(affinity.get(field), where.at(f"{where.field}.{field}"))
        entries = maps(part.get("requiredDuringSchedulingIgnoredDuringExecution"), at)
        for index, entry in enumerate(entries):
            term = _term(entry, labels, at.at(f"{at.field}[{index}]"), attracts=attracts)
            if attracts or term.selector != _NOBODY:
                found.append(term)
    return tuple(found)


def _term(entry: Mapping[str, object], labels: Mapping[str, str], at: Where, *, attracts: bool) -> PodTerm:
    key = text(entry.get("topologyKey"), at.at(f"{at.field}.topologyKey"))
    if not key:
        raise InputError("a term names the node label over which it holds", at.at(f"{at.field}.topologyKey"))
    if entry.get("labelSelector") is None:
        selector: Term = _NOBODY
    else:
        selected = mapping(entry.get("labelSelector"), at.at(f"{at.field}.labelSelector"))
        own = (
            Requirement(name, operator, (labels[name],))
            for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for name in strings(entry.get(field), at.at(f"{at.field}.{field}"))
            if name in labels
        )
        selector = (*selector_of(selected, at.at(f"{at.field}.labelSelector")), *own)
    spaces, every = _namespaces(entry, at)
    return PodTerm(key, selector, spaces, every, attracts)


def selector_of(selector: Mapping[str, object], where: Where) -> tuple[Requirement, ...]:
    """A LabelSelector as requirements that must all hold; an empty one holds always. Raises `InputError`."""
    wanted = texts(selector.get("matchLabels"), where.at(f"{where.field}.matchLabels"))
    found = [Requirement(key, "In", (value,)) for key, value in wanted.items()]
    for index, entry in enumerate(maps(selector.get("matchExpressions"), where)):
        at = where.at(f"{where.field}.matchExpressions[{index}]")
        operator = text(entry.get("operator"), at)
        if operator not in _OPERATORS:
            raise InputError(f"{operator!r} is no operator; use one of {', '.join(_OPERATORS)}", at)
        found.append(Requirement(text(entry.get("key"), at), operator, strings(entry.get("values"), at)))
    return tuple(found)


def _namespaces(entry: Mapping[str, object], at: Where) -> tuple[tuple[str, ...], bool]:
    """The namespaces that a term names, and whether it means every one; neither means the pod's own."""
    spaces = strings(entry.get("namespaces"), at.at(f"{at.field}.namespaces"))
    if entry.get("namespaceSelector") is None:
        return spaces, False
    selector = mapping(entry.get("namespaceSelector"), at.at(f"{at.field}.namespaceSelector"))
    wanted = selector_of(selector, at.at(f"{at.field}.namespaceSelector"))
    if len(wanted) == 1 and (wanted[0].key, wanted[0].operator) == (_NAME, "In"):
        return (*spaces, *wanted[0].values), False
    return spaces, True


def means(term: PodTerm, own: str, space: str, labels: Mapping[str, str]) -> bool:
    """Whether a term of a pod in namespace `own` means a pod with these labels in namespace `space`."""
    if not term.every and space not in (term.spaces or (own,)):
        return False
    return all(holds(requirement, labels.get(requirement.key)) for requirement in term.selector)


def terms_json(terms: tuple[PodTerm, ...]) -> list[dict[str, object]]:
    """Terms as plain JSON; `terms_from` reads them back."""
    return [
        {
            "key": term.key,
            "selector": [
                {"key": r.key, "operator": r.operator, "values": list(r.values)} for r in term.selector
            ],
            "namespaces": list(term.spaces),
            "everyNamespace": term.every,
        }
        for term in terms
    ]


def terms_from(data: object, where: Where) -> Iterator[PodTerm]:
    """The anti-affinity terms that `terms_json` wrote. Raises `InputError`."""
    for entry in maps(data, where):
        selector = tuple(
            Requirement(
                text(r.get("key"), where), text(r.get("operator"), where), strings(r.get("values"), where)
            )
            for r in maps(entry.get("selector"), where)
        )
        yield PodTerm(
            text(entry.get("key"), where),
            selector,
            strings(entry.get("namespaces"), where),
            entry.get("everyNamespace") is True,
        )
