"""Reads Topology objects of KAI, of Kueue and of Bayplan, which all list `spec.levels[].nodeLabel`."""

from __future__ import annotations

from collections.abc import Mapping

from planner.manifests.fields import mapping, maps, text, texts, type_in_words
from planner.model.errors import InputError, Where
from planner.model.topology import HOSTNAME, Link, Topology

MOST_LEVELS = 16
"""Maximum number of levels, as in the schema of Bayplan's Topology (manifests/20-crds.yaml); Topologies of
KAI and Kueue have the same limit here.
"""


RESERVABLE_KEY = "bayplan.dev/reservable-level"
"""Annotation with the reservable level, for Topologies of KAI and Kueue, which have no field for it."""


SELECTOR_KEY = "bayplan.dev/node-selector"
"""Annotation with the node selector (key=value,key=value), for Topologies of KAI and Kueue."""


OVERSUBSCRIPTION_KEY = "bayplan.dev/oversubscription"
"""Annotation with the oversubscription of levels (see `_oversubscription`)."""


ADAPTER_KEY = "bayplan.dev/adapter-gbps"
"""Annotation with the rate of a network adapter, in Gb/s."""


def of_runai(document: Mapping[str, object]) -> Mapping[str, object] | None:
    """Converts a topology in the format of Run:ai's API to a KAI Topology; returns None for other input.

    The format is `name`, and `levels` as a list of label keys, coarse to fine.
    """
    levels, name = document.get("levels"), document.get("name")
    if "kind" in document or not isinstance(levels, list) or not isinstance(name, str):
        return None
    spec = {"levels": [{"nodeLabel": level} for level in levels]}
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": spec,
    }


def topology_from(item: Mapping[str, object], where: Where) -> Topology:
    """Returns the topology in an object; the hostname is added as last level if it is missing.

    Raises `InputError` for no level or more than 16, a repeated level, a hostname that is not last, or an
    invalid reservable level, node selector, oversubscription or adapter speed.
    """
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    spec = mapping(item.get("spec"), where.at_path("spec"))
    annotations = texts(metadata.get("annotations"), where.at_path("metadata.annotations"))
    levels, aliases = _levels(spec, where)
    reservable = text(spec.get("reservableLevel"), where.at_path("spec.reservableLevel"))
    place = where.at_path("spec.reservableLevel" if reservable else f"metadata.annotations.{RESERVABLE_KEY}")
    reservable = reservable or annotations.get(RESERVABLE_KEY, "")
    reservable = aliases.get(reservable, reservable)
    if reservable and reservable not in levels:
        raise InputError(f"{reservable!r} is none of the levels {', '.join(levels)}", place)
    return Topology(
        name=text(metadata.get("name"), where.at_path("metadata.name")),
        levels=levels,
        node_selector=_selector(spec, annotations, where),
        reservable=reservable,
        source=text(item.get("apiVersion"), where.at_path("apiVersion")).partition("/")[0],
        aliases=aliases,
        oversubscription=_oversubscription(annotations, levels, where),
        adapter_gbps=_adapter(annotations, where),
        hostless=not any(entry.get("nodeLabel") == HOSTNAME for entry in maps(spec.get("levels"), where)),
    )


def _levels(spec: Mapping[str, object], where: Where) -> tuple[tuple[str, ...], dict[str, str]]:
    """Returns the label keys of the levels, the hostname last, and the label keys by alias."""
    levels: list[str] = []
    aliases: dict[str, str] = {}
    for index, entry in enumerate(maps(spec.get("levels"), where.at_path("spec.levels"))):
        place = where.at_path(f"spec.levels[{index}].nodeLabel")
        key = text(entry.get("nodeLabel"), place)
        if not key:
            raise InputError("a level names its node label", place)
        if key in levels:
            raise InputError(f"{key} occurs twice; each level once, coarse to fine", place)
        if levels and levels[-1] == HOSTNAME:
            raise InputError(f"{key} comes after {HOSTNAME}, which can only be last", place)
        levels.append(key)
        alias = text(entry.get("alias"), where.at_path(f"spec.levels[{index}].alias"))
        if alias:
            aliases[alias] = key
    if not levels:
        raise InputError("a Topology has at least one level", where.at_path("spec.levels"))
    if len(levels) > MOST_LEVELS:
        raise InputError(f"{len(levels)} levels; {MOST_LEVELS} are the most", where.at_path("spec.levels"))
    return (*levels, *(() if levels[-1] == HOSTNAME else (HOSTNAME,))), aliases


def _selector(spec: Mapping[str, object], annotations: Mapping[str, str], where: Where) -> Mapping[str, str]:
    """Returns the node selector, from the field of Bayplan's kind or from the annotation."""
    if spec.get("nodeSelector") is not None:
        return texts(spec["nodeSelector"], where.at_path("spec.nodeSelector"))
    selector: dict[str, str] = {}
    place = where.at_path(f"metadata.annotations.{SELECTOR_KEY}")
    for pair in filter(None, annotations.get(SELECTOR_KEY, "").split(",")):
        key, equals, value = pair.strip().partition("=")
        if not key or not equals:
            raise InputError(f"{pair!r} is no pair; write key=value,key=value", place)
        selector[key] = value
    return selector


def _oversubscription(
    annotations: Mapping[str, str], levels: tuple[str, ...], where: Where
) -> dict[str, float]:
    """Returns the ratio of each level from `LEVEL=RATIO,…`: the links between two domains of the level carry
    1/RATIO of what the nodes in a domain can send.
    """
    result: dict[str, float] = {}
    place = where.at_path(f"metadata.annotations.{OVERSUBSCRIPTION_KEY}")
    for pair in filter(None, annotations.get(OVERSUBSCRIPTION_KEY, "").split(",")):
        level, _, ratio = pair.strip().partition("=")
        if level not in levels:
            raise InputError(f"{level!r} is none of the levels {', '.join(levels)}", place)
        result[level] = _from_one_up(ratio, "a ratio from 1 up, as in LEVEL=7", place)
    return result


def _adapter(annotations: Mapping[str, str], where: Where) -> float:
    stated = annotations.get(ADAPTER_KEY, "")
    place = where.at_path(f"metadata.annotations.{ADAPTER_KEY}")
    return _from_one_up(stated, "gigabits a second, as in 400", place) if stated else 0.0


def _from_one_up(stated: str, expected: str, where: Where) -> float:
    try:
        number = float(stated)
    except ValueError:
        number = 0.0
    if not 1 <= number < 1e6:
        raise InputError(f"{stated!r} is not {expected}", where)
    return number


def links_of(item: Mapping[str, object], where: Where) -> tuple[Link, ...]:
    """Returns the cables of a Bayplan Topology: `spec.links[] {from, to, gbps}`. Raises `InputError`."""
    spec = mapping(item.get("spec"), where.at_path("spec"))
    result: list[Link] = []
    for index, entry in enumerate(maps(spec.get("links"), where.at_path("spec.links"))):
        place = f"spec.links[{index}]"
        speed = entry.get("gbps", 0)
        if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not 0 <= speed < 1e9:
            raise InputError(
                f"expected gigabits a second, found {type_in_words(speed)}", where.at_path(f"{place}.gbps")
            )
        source, target = (
            text(entry.get("from"), where.at_path(place)),
            text(entry.get("to"), where.at_path(place)),
        )
        if not source or not target:
            raise InputError("a link names its two ends, from and to", where.at_path(place))
        result.append(Link(source, target, float(speed)))
    return tuple(result)
