"""Reads required pod affinity and anti-affinity, and hard spread constraints, from a pod's spec.

Source: core/v1 PodAffinityTerm and kube-scheduler's InterPodAffinity. A term matches the pods that its
labelSelector selects (none without a selector) in its namespaces: the pod's own if neither `namespaces` nor
`namespaceSelector` is set. A namespace with unknown labels matches every selector, unless that only reads
`kubernetes.io/metadata.name`. `matchLabelKeys` and `mismatchLabelKeys` add the pod's own values of those
labels.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.manifests.fields import integer, mapping, maps, strings, text
from planner.manifests.requirements import selector_from
from planner.model.errors import InputError, Where
from planner.model.labels import Requirement, Term
from planner.model.pod import NAMESPACE_NAME_LABEL, PodTerm, SpreadConstraint

_NO_PODS = (Requirement("", "In"),)
"""A selector that matches no pod (`In` without values): what a term without a labelSelector has."""


OF_EACH_GROUP = frozenset(
    ("leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/group-key")
)
"""Labels that LeaderWorkerSet gives the pods of each of its groups when it creates them (lws 0.7.0,
pkg/webhooks/pod_webhook.go, pkg/controllers/pod_controller.go). Templates lack them; bound pods of other
groups have them.
"""


JOBSET_PRIORITY = "jobset.sigs.k8s.io/priority"
"""JobSet's label of pods with their priority, for which pods of other priorities are exempt from the
anti-affinity of exclusive placement. Pod templates lack it and name a class at most, so this anti-affinity is
read without it: no pod is exempt.
"""
JOB_KEY = "jobset.sigs.k8s.io/job-key"
"""JobSet's label of pods: a hash of their child Job."""


def terms_of(affinity: Mapping[str, object], labels: Mapping[str, str], where: Where) -> tuple[PodTerm, ...]:
    """Returns the required terms of a pod with these labels; `where`: the location of `affinity`.

    Raises `InputError`.
    """
    result: list[PodTerm] = []
    for field, attracts in (("podAffinity", True), ("podAntiAffinity", False)):
        place = where.below(f"{field}.requiredDuringSchedulingIgnoredDuringExecution")
        part = mapping(affinity.get(field), where.below(f"{field}"))
        entries = maps(part.get("requiredDuringSchedulingIgnoredDuringExecution"), place)
        for index, entry in enumerate(entries):
            term = _term(entry, labels, place.below(f"[{index}]"), attracts=attracts)
            # Anti-affinity to no pod has no effect, but affinity to no pod cannot be met.
            if attracts or term.selector != _NO_PODS:
                result.append(term)
    return tuple(result)


def _term(entry: Mapping[str, object], labels: Mapping[str, str], place: Where, *, attracts: bool) -> PodTerm:
    key = text(entry.get("topologyKey"), place.below("topologyKey"))
    if not key:
        raise InputError("a term names the node label over which it holds", place.below("topologyKey"))
    if entry.get("labelSelector") is None:
        selector: Term = _NO_PODS
    else:
        selector = _selected(entry, labels, place)
    spaces, among = _namespaces(entry, place)
    return PodTerm(key, selector, spaces, among is not None, attracts, among or ())


def _selected(entry: Mapping[str, object], labels: Mapping[str, str], place: Where) -> Term:
    """Returns the labelSelector of an entry, with requirements for `matchLabelKeys` and
    `mismatchLabelKeys`. A key in `OF_EACH_GROUP` that the labels lack matches only pods that lack it too: the
    pods of the same template.
    """
    selected = mapping(entry.get("labelSelector"), place.below("labelSelector"))
    label_requirements = (
        Requirement(name, operator, (labels[name],))
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for name in strings(entry.get(field), place.below(f"{field}"))
        if name in labels
    )
    of_own_group = (
        Requirement(name, "DoesNotExist", ())
        for name in strings(entry.get("matchLabelKeys"), place.below("matchLabelKeys"))
        if name in OF_EACH_GROUP and name not in labels
    )
    stated = selector_from(selected, place.below("labelSelector"))
    if any(requirement.key == JOB_KEY for requirement in stated):
        stated = tuple(requirement for requirement in stated if requirement.key != JOBSET_PRIORITY)
    return (*stated, *label_requirements, *of_own_group)


def spreads_of(
    spec: Mapping[str, object], labels: Mapping[str, str], where: Where
) -> tuple[SpreadConstraint, ...]:
    """Returns the hard spread constraints of a pod with these labels; `where`: the location of their list.

    `ScheduleAnyway` entries are preferences: they are validated and left out. Raises `InputError`.
    """
    result: list[SpreadConstraint] = []
    for index, entry in enumerate(maps(spec.get("topologySpreadConstraints"), where)):
        place = where.below(f"[{index}]")
        spread = _spread(entry, labels, place)
        how = _one_of(entry, "whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"), place)
        if how == "DoNotSchedule":
            result.append(spread)
    return tuple(result)


def _spread(entry: Mapping[str, object], labels: Mapping[str, str], place: Where) -> SpreadConstraint:
    key = text(entry.get("topologyKey"), place.below("topologyKey"))
    if not key:
        raise InputError("a constraint names the node label over which it holds", place.below("topologyKey"))
    numbers = {}
    for field in ("maxSkew", "minDomains"):
        numbers[field] = integer(entry.get(field, 1), place.below(f"{field}"))
        if numbers[field] < 1:
            raise InputError(f"{numbers[field]} is no {field}; use 1 or more", place.below(f"{field}"))
    return SpreadConstraint(
        key,
        numbers["maxSkew"],
        _counted(entry, labels, place),
        numbers["minDomains"],
        _one_of(entry, "nodeAffinityPolicy", ("Honor", "Ignore"), place) == "Honor",
        _one_of(entry, "nodeTaintsPolicy", ("Ignore", "Honor"), place) == "Honor",
    )


def _counted(entry: Mapping[str, object], labels: Mapping[str, str], place: Where) -> Term:
    """Returns the selector of the pods that a constraint counts. Without a labelSelector it counts none; with
    an empty one too, although this matches every pod (`countPodsMatchSelector` in kube-scheduler 1.37.2).
    """
    stated = entry.get("labelSelector") is not None
    return (_selected(entry, labels, place) if stated else ()) or _NO_PODS


def _one_of(entry: Mapping[str, object], field: str, valid: tuple[str, ...], place: Where) -> str:
    """Returns the value of a field with fixed choices; the first choice if it is missing."""
    word = text(entry.get(field), place.below(f"{field}")) or valid[0]
    if word not in valid:
        raise InputError(f"{word!r} is no {field}; use one of {', '.join(valid)}", place.below(f"{field}"))
    return word


def _namespaces(entry: Mapping[str, object], place: Where) -> tuple[tuple[str, ...], Term | None]:
    """Returns the namespaces that a term names, and its namespace selector; () and None mean the
    pod's own.
    """
    spaces = strings(entry.get("namespaces"), place.below("namespaces"))
    if entry.get("namespaceSelector") is None:
        return spaces, None
    selector = mapping(entry.get("namespaceSelector"), place.below("namespaceSelector"))
    wanted = selector_from(selector, place.below("namespaceSelector"))
    # A selector that only lists namespaces by name is the same as `namespaces`.
    if len(wanted) == 1 and (wanted[0].key, wanted[0].operator) == (NAMESPACE_NAME_LABEL, "In"):
        return (*spaces, *wanted[0].values), None
    return spaces, wanted
