"""Reads settings from objects: schedulers' ConfigMaps, LimitRanges, ResourceQuotas, PriorityClasses and
RuntimeClasses.

The ConfigMaps are `topology-scheduler-config` (key `config.yaml`, a SchedulerConfig) and
`kai-scheduler-config`. Weights must not be negative; they are normalised to a sum of 1. In
`topology-scheduler-history` (key `history.yaml`), Bayplan's controller records how past gangs ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.manifests.fields import integer, mapping, maps, text, texts, type_in_words, yaml_text
from planner.manifests.requirements import tolerations_of
from planner.model import quantity
from planner.model.errors import InputError, Where
from planner.model.priority import PriorityClass
from planner.model.settings import WEIGHTS, Bound, LevelPolicy, Quota, SchedulerSettings
from planner.model.topology import HOSTNAME
from planner.node.runtime_class import RuntimeClass

LEAF_SPINE_CONFIG = "topology-scheduler-config"


KAI_CONFIG = "kai-scheduler-config"


HISTORY_CONFIG = "topology-scheduler-history"


HISTORY_KEY = "history.yaml"


SCHEDULER_CONFIGS = (LEAF_SPINE_CONFIG, KAI_CONFIG, HISTORY_CONFIG)


def with_config(settings: SchedulerSettings, item: Mapping[str, object], where: Where) -> SchedulerSettings:
    """Returns the settings with the content of a ConfigMap whose name is in `SCHEDULER_CONFIGS`.

    Raises `InputError` that names the field.
    """
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    readers = {LEAF_SPINE_CONFIG: _leaf_spine, HISTORY_CONFIG: _history}
    read = readers.get(str(metadata.get("name")), _kai)
    for key, content in texts(item.get("data"), where.at_path("data")).items():
        place = where.at_path(f"data[{key}]")
        parsed = yaml_text(content, place)
        if isinstance(parsed, Mapping):
            settings = read(settings, parsed, place)
    return settings


def with_leaf_spine(
    settings: SchedulerSettings, item: Mapping[str, object], where: Where
) -> SchedulerSettings:
    """Returns the settings with the content of nod-ai's TopologySchedulerConfig object, which has the same
    spec as the ConfigMap `topology-scheduler-config`.

    Raises `InputError` that names the field.
    """
    return _leaf_spine(settings, item, where)


def _leaf_spine(settings: SchedulerSettings, config: Mapping[str, object], where: Where) -> SchedulerSettings:
    """Returns the settings with the weights and leaf limits of nod-ai's configuration."""
    spec = mapping(config.get("spec"), where)
    weights = mapping(spec.get("scoringWeights"), where)
    limits = mapping(spec.get("topologyConstraints"), where)
    return replace(
        settings,
        weights=_weights(weights, where) if weights else settings.weights,
        nodes_per_leaf=_limit(limits, "maxNodesPerLeaf", settings.nodes_per_leaf, where),
        gpus_per_leaf=_limit(limits, "maxGPUsPerLeaf", settings.gpus_per_leaf, where),
        limited=settings.limited or bool(limits),
    )


def _history(settings: SchedulerSettings, config: Mapping[str, object], where: Where) -> SchedulerSettings:
    """Returns the settings with the score of each leaf switch, between 0 and 1, that the controller has
    written: the average of how past gangs ended there.
    """
    result: dict[str, float] = {}
    for leaf, value in config.items():
        average = _number(value, str(leaf), where)
        if average > 1:
            raise InputError(f"{leaf}: {value} is not between 0 and 1", where)
        result[str(leaf)] = average
    return replace(settings, history={**settings.history, **result})


def _weights(stated: Mapping[str, object], where: Where) -> dict[str, float]:
    """Returns all four weights, normalised to a sum of 1; a missing one is 0. Raises `InputError` for unknown
    or negative weights, or if all are 0.
    """
    for name in stated:
        if name not in WEIGHTS:
            raise InputError(f"{name!r} is no weight; use {', '.join(WEIGHTS)}", where)
    weights = {name: _number(stated.get(name, 0.0), f"scoringWeights.{name}", where) for name in WEIGHTS}
    total = sum(weights.values())
    if not 0 < total < float("inf"):
        raise InputError("scoringWeights: at least one weight must be above zero", where)
    return {name: weight / total for name, weight in weights.items()}


def _number(value: object, name: str, where: Where) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{name}: expected a number, found {type_in_words(value)}", where)
    if not 0 <= value < 1e12:
        raise InputError(f"{name}: {value} is not zero or more", where)
    return float(value)


def _limit(limits: Mapping[str, object], name: str, default: int, where: Where) -> int:
    value = limits.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"topologyConstraints.{name}: expected a whole number of 1 or more", where)
    return value


def _kai(settings: SchedulerSettings, config: Mapping[str, object], where: Where) -> SchedulerSettings:
    """Returns the settings with the level names and policies of KAI's ConfigMap."""
    nested = config.get(_KAI_ROOT)
    config = mapping(nested, where.at_path(_KAI_ROOT)) if nested is not None else config
    aliases = dict(settings.aliases)
    for entry in maps(config.get("levels"), where):
        name, label = text(entry.get("name"), where), text(entry.get("label"), where)
        if not name or not label:
            raise InputError("levels: each has a name and a label", where)
        aliases[name] = label
    policies = dict(settings.policies)
    for entry in maps(config.get("policies"), where):
        policy = _policy(entry, where)
        is_alias = policy.level in aliases
        level = policy.level if is_alias else _KAI_WORDS.get(policy.level, policy.level)
        policies[policy.name] = replace(policy, level=level)
    return replace(settings, aliases=aliases, policies=policies)


_KAI_ROOT = "topologyAwareScheduling"
"""The key that contains policies and levels in the older recipe for KAI (docs/decisions/0148); some
ConfigMaps omit it.
"""


_KAI_WORDS = {"nvlink": "nvlink-domain", "nvswitch": HOSTNAME, "numa": HOSTNAME}
"""The level for each word that the recipe's policies use as `topology` without an entry in `levels`. NVSwitch
connects all GPUs of a host. A NUMA node lies within a host, and the kubelet chooses the NUMA node.
"""


def _policy(entry: Mapping[str, object], where: Where) -> LevelPolicy:
    name, level = text(entry.get("name"), where), text(entry.get("topology"), where)
    if not name or not level:
        raise InputError("policies: each has a name and a topology, which is a level's name", where)
    strategy = text(entry.get("strategy"), where) or "prefer"
    weight = _number(entry.get("weight", 1), f"policies {name}: weight", where)
    if strategy == "pack":
        return LevelPolicy(name, weight, level, "pack")
    if strategy == "prefer":
        return LevelPolicy(name, weight, level, "prefer")
    raise InputError(f"policies {name}: {strategy!r} is no strategy; use pack or prefer", where)


def priority_class_from(item: Mapping[str, object], where: Where) -> PriorityClass:
    """Returns a PriorityClass. Raises `InputError` for a malformed one."""
    name = text(
        mapping(item.get("metadata"), where.at_path("metadata")).get("name"), where.at_path("metadata.name")
    )
    value = integer(item.get("value"), where.at_path("value"))
    return PriorityClass(name, value, item.get("globalDefault") is True)


def runtime_class_from(item: Mapping[str, object], where: Where) -> RuntimeClass:
    """Returns a RuntimeClass, with its overhead in base units. Raises `InputError` for a malformed one."""
    metadata = mapping(item.get("metadata"), where.at_path("metadata"))
    overhead = mapping(item.get("overhead"), where.at_path("overhead"))
    fixed = quantity.amounts(overhead.get("podFixed"), where.at_path("overhead.podFixed"), up=True)
    scheduling = mapping(item.get("scheduling"), where.at_path("scheduling"))
    return RuntimeClass(
        text(metadata.get("name"), where.at_path("metadata.name")),
        {name: amount for name, amount in fixed.items() if amount > 0},
        texts(scheduling.get("nodeSelector"), where.at_path("scheduling.nodeSelector")),
        tolerations_of(scheduling, where.at_path("scheduling")),
    )


_TRACKED = ("requests.", "limits.")
"""Prefixes of a resource's name in a ResourceQuota."""


def bounds_from(item: Mapping[str, object], where: Where) -> tuple[Bound, ...]:
    """Returns the entries of a LimitRange, with amounts in base units. Raises `InputError` for a malformed
    one.
    """
    name = text(
        mapping(item.get("metadata"), where.at_path("metadata")).get("name"), where.at_path("metadata.name")
    )
    spec = mapping(item.get("spec"), where.at_path("spec"))
    return tuple(
        _bound(name, entry, where.at_path(f"spec.limits[{index}]"))
        for index, entry in enumerate(maps(spec.get("limits"), where.at_path("spec.limits")))
    )


def _bound(name: str, entry: Mapping[str, object], where: Where) -> Bound:
    kind = text(entry.get("type"), where.below("type"))
    minimum, maximum, limits, requests = (
        quantity.amounts(entry.get(part), where.below(part), up=up)
        for part, up in (("min", True), ("max", False), ("default", True), ("defaultRequest", True))
    )
    # The API server sets in this order what is missing (pkg/apis/core/v1, `SetDefaults_LimitRangeItem`).
    defaults = {**minimum, **maximum, **limits, **requests} if kind == "Container" else {}
    return Bound(name, kind, minimum, maximum, defaults)


def quota_from(item: Mapping[str, object], where: Where) -> Quota | None:
    """Returns a ResourceQuota, or None for one that counts only some pods (scopes). Raises `InputError`."""
    name = text(
        mapping(item.get("metadata"), where.at_path("metadata")).get("name"), where.at_path("metadata.name")
    )
    spec = mapping(item.get("spec"), where.at_path("spec"))
    if spec.get("scopes") or spec.get("scopeSelector"):
        return None
    status = mapping(item.get("status"), where.at_path("status"))
    hard = _counted(spec.get("hard"), where.at_path("spec.hard"), up=False)
    used = _counted(status.get("used"), where.at_path("status.used"), up=True)
    return Quota(name, hard, {key: max(0, amount - used.get(key, 0)) for key, amount in hard.items()})


def _counted(values: object, where: Where, *, up: bool) -> dict[str, int]:
    """Returns amounts by the quota's resource names; plain `cpu` and `memory` become `requests.cpu` and
    `requests.memory`.
    """
    result: dict[str, int] = {}
    for key, value in mapping(values, where).items():
        resource = next((key.removeprefix(prefix) for prefix in _TRACKED if key.startswith(prefix)), key)
        name = f"requests.{key}" if key in ("cpu", "memory") else key
        result[name] = quantity.amount(resource, value, where.below(f"{key}"), up=up)
    return result
