"""What schedulers' ConfigMaps say of how to place: nod-ai's weights and limits, KAI's levels and policies.

`topology-scheduler-config` (key `config.yaml`, SchedulerConfig) and `kai-scheduler-config`. Weights must not
be negative, and are normalised to a sum of 1. `topology-scheduler-history` (key `history.yaml`) is what the
controller keeps of how past gangs ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import yaml

from planner.errors import InputError, Where
from planner.reading import kind_of, mapping, maps, text, texts

LEAF_SPINE_CONFIG = "topology-scheduler-config"
KAI_CONFIG = "kai-scheduler-config"
HISTORY_CONFIG = "topology-scheduler-history"
HISTORY_KEY = "history.yaml"
WEIGHTS = {
    "resourceAvailability": 0.4,
    "topologyAlignment": 0.3,
    "domainUtilization": 0.2,
    "historicalPerformance": 0.1,
}


@dataclass(frozen=True, slots=True)
class LevelPolicy:
    """A named policy of KAI's ConfigMap: `pack` keeps a gang in one domain of the level, `prefer` would."""

    name: str
    weight: float
    level: str
    strategy: Literal["pack", "prefer"]


@dataclass(frozen=True, slots=True)
class Settings:
    """`weights` sum to 1. `nodes_per_leaf`, `gpus_per_leaf`: the most of one gang in a leaf. `aliases`: level
    names to label keys. `policies`: by name. `history`: by leaf (`planner.history.key_of`), how past gangs
    there ended, 0 to 1."""

    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    nodes_per_leaf: int = 4
    gpus_per_leaf: int = 32
    limited: bool = False
    """Whether a ConfigMap states these two: then they are limits, and otherwise no more than usual."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, LevelPolicy] = field(default_factory=dict)
    history: Mapping[str, float] = field(default_factory=dict)


DEFAULTS = Settings()
KNOWN = (LEAF_SPINE_CONFIG, KAI_CONFIG, HISTORY_CONFIG)


def with_config(settings: Settings, item: Mapping[str, object], where: Where) -> Settings:
    """The settings with what a ConfigMap of these names says. Raises `InputError`, naming the field."""
    metadata = mapping(item.get("metadata"), where.at("metadata"))
    readers = {LEAF_SPINE_CONFIG: _leaf_spine, HISTORY_CONFIG: _history}
    read = readers.get(str(metadata.get("name")), _kai)
    for key, content in texts(item.get("data"), where.at("data")).items():
        at = where.at(f"data[{key}]")
        try:
            parsed = yaml.safe_load(content)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise InputError("is no YAML", at) from error
        if isinstance(parsed, Mapping):
            settings = read(settings, parsed, at)
    return settings


def _leaf_spine(settings: Settings, config: Mapping[str, object], where: Where) -> Settings:
    spec = mapping(config.get("spec"), where)
    weights = mapping(spec.get("scoringWeights"), where)
    limits = mapping(spec.get("topologyConstraints"), where)
    return replace(
        settings,
        weights=_weights(weights, where) if weights else settings.weights,
        nodes_per_leaf=_most(limits, "maxNodesPerLeaf", settings.nodes_per_leaf, where),
        gpus_per_leaf=_most(limits, "maxGPUsPerLeaf", settings.gpus_per_leaf, where),
        limited=settings.limited or bool(limits),
    )


def _history(settings: Settings, config: Mapping[str, object], where: Where) -> Settings:
    """Each leaf with its average, as the controller writes them."""
    found: dict[str, float] = {}
    for leaf, value in config.items():
        average = _number(value, str(leaf), where)
        if average > 1:
            raise InputError(f"{leaf}: {value} is not between 0 and 1", where)
        found[str(leaf)] = average
    return replace(settings, history={**settings.history, **found})


def _weights(stated: Mapping[str, object], where: Where) -> dict[str, float]:
    """All four weights, those that are not stated at 0. Raises `InputError` for unknown or negative ones."""
    for name in stated:
        if name not in WEIGHTS:
            raise InputError(f"{name!r} is no weight; use {', '.join(WEIGHTS)}", where)
    found = {name: _number(stated.get(name, 0.0), f"scoringWeights.{name}", where) for name in WEIGHTS}
    total = sum(found.values())
    if not 0 < total < float("inf"):
        raise InputError("scoringWeights: at least one weight must be above zero", where)
    return {name: weight / total for name, weight in found.items()}


def _number(value: object, name: str, where: Where) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{name}: expected a number, found {kind_of(value)}", where)
    if not 0 <= value < 1e12:
        raise InputError(f"{name}: {value} is not zero or more", where)
    return float(value)


def _most(limits: Mapping[str, object], name: str, default: int, where: Where) -> int:
    value = limits.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"topologyConstraints.{name}: expected a whole number of 1 or more", where)
    return value


def _kai(settings: Settings, config: Mapping[str, object], where: Where) -> Settings:
    aliases = dict(settings.aliases)
    for entry in maps(config.get("levels"), where):
        name, label = text(entry.get("name"), where), text(entry.get("label"), where)
        if not name or not label:
            raise InputError("levels: each has a name and a label", where)
        aliases[name] = label
    policies = dict(settings.policies)
    for entry in maps(config.get("policies"), where):
        policy = _policy(entry, where)
        policies[policy.name] = policy
    return replace(settings, aliases=aliases, policies=policies)


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
