"""Random constraints of pods: node affinity, affinity to pods, spread, tolerations, preferences."""

from __future__ import annotations

from random import Random

from tests.e2e.api import Json
from tests.schedulers.kube.random_nodes import HOST, RACK, ZONE

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMESPACES = ("research", "inference")
TEAMS = {"research": "p", "inference": "q"}
"""The label `team` of each namespace."""
JOB_NAME = "batch.kubernetes.io/job-name"


def random_labels(chance: Random) -> Json:
    """Labels of a pod."""
    labels = {}
    if chance.random() < 0.9:
        labels["app"] = chance.choice("abc")
    if chance.random() < 0.5:
        labels["rev"] = chance.choice("12")
    return labels


def constraints(chance: Random, world: str, much: float) -> Json:
    """The fields of a pod's spec that constrain its nodes; `much`, at most 1: how many."""
    affinity: Json = {}
    if chance.random() < 0.35 * much:
        terms = [_node_term(chance, world) for _ in range(chance.choice((1, 1, 2)))]
        affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
    if chance.random() < 0.3 * much:
        affinity["podAffinity"] = {REQUIRED: [_term(chance) for _ in range(chance.choice((1, 1, 2)))]}
    if chance.random() < 0.45 * much:
        affinity["podAntiAffinity"] = {REQUIRED: [_term(chance) for _ in range(chance.choice((1, 1, 2)))]}
    if chance.random() < 0.25:
        _prefer(chance, world, affinity)
    spec: Json = {"affinity": affinity} if affinity else {}
    if chance.random() < 0.15 * much:
        key, value = chance.choice(("pool", ZONE)), chance.choice("xa")
        spec["nodeSelector"] = {key: value}
    if chance.random() < 0.7 * much:
        used: set[tuple[str, str]] = set()
        entries = [_spread(chance, used) for _ in range(chance.choice((1, 1, 2)))]
        spec["topologySpreadConstraints"] = [entry for entry in entries if entry]
    if chance.random() < 0.35:
        spec["tolerations"] = [_toleration(chance) for _ in range(chance.choice((1, 1, 2)))]
    return spec


def _expression(chance: Random, key: str, values: tuple[str, ...]) -> Json:
    operator = chance.choice(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    expression: Json = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = chance.sample(values, chance.randint(1, len(values)))
    return expression


def _node_term(chance: Random, world: str) -> Json:
    term: Json = {}
    expressions = []
    for _ in range(chance.choice((1, 1, 2))):
        if chance.random() < 0.25:
            bound = str(chance.randint(2, 8))
            expressions.append({"key": "gen", "operator": chance.choice(("Gt", "Lt")), "values": [bound]})
        else:
            key = chance.choice(("pool", ZONE, RACK, "gen"))
            expressions.append(_expression(chance, key, ("x", "a", "r1", "b", "5")))
    if chance.random() < 0.9:
        term["matchExpressions"] = expressions
    if chance.random() < 0.12:
        name, operator = f"{world}-n{chance.randint(0, 4)}", chance.choice(("In", "NotIn"))
        term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [name]}]
    return term


def _selector(chance: Random) -> Json | None:
    kind = chance.random()
    if kind < 0.08:
        return None
    if kind < 0.16:
        return {}
    if kind < 0.6:
        return {"matchLabels": {"app": chance.choice("abc")}}
    keys = [chance.choice(("app", "rev", "app", "rev", JOB_NAME)) for _ in range(chance.choice((1, 1, 2)))]
    return {"matchExpressions": [_expression(chance, key, ("a", "b", "1")) for key in keys]}


def _term(chance: Random) -> Json:
    term: Json = {"topologyKey": chance.choice((HOST, HOST, ZONE, RACK))}
    selector = _selector(chance)
    if selector is not None:
        term["labelSelector"] = selector
    kind = chance.random()
    if kind < 0.15:
        term["namespaces"] = chance.sample(NAMESPACES, chance.randint(1, 2))
    elif kind < 0.22:
        term["namespaceSelector"] = {}
    elif kind < 0.3:
        term["namespaceSelector"] = {"matchLabels": {"team": chance.choice("pq")}}
    elif kind < 0.34:
        term |= {"namespaceSelector": {"matchLabels": {"team": "q"}}, "namespaces": ["research"]}
    if selector is not None and chance.random() < 0.2:
        field = chance.choice(("matchLabelKeys", "mismatchLabelKeys"))
        term[field] = [chance.choice(("rev", JOB_NAME))]
    return term


def _spread(chance: Random, used: set[tuple[str, str]]) -> Json | None:
    key = chance.choice((HOST, ZONE, ZONE, RACK))
    when = "DoNotSchedule" if chance.random() < 0.85 else "ScheduleAnyway"
    if (key, when) in used:
        return None
    used.add((key, when))
    entry: Json = {"topologyKey": key, "maxSkew": chance.choice((1, 1, 2)), "whenUnsatisfiable": when}
    selector = _selector(chance)
    if selector is not None:
        entry["labelSelector"] = selector
    if when == "DoNotSchedule" and chance.random() < 0.2:
        entry["minDomains"] = chance.randint(1, 4)
    if chance.random() < 0.25:
        entry["nodeAffinityPolicy"] = chance.choice(("Honor", "Ignore"))
    if chance.random() < 0.3:
        entry["nodeTaintsPolicy"] = chance.choice(("Honor", "Ignore"))
    if selector is not None and chance.random() < 0.25:
        entry["matchLabelKeys"] = [chance.choice(("rev", JOB_NAME))]
    return entry


def _prefer(chance: Random, world: str, affinity: Json) -> None:
    """Adds preferences, which may not matter."""
    weight = {"weight": chance.randint(1, 100)}
    if chance.random() < 0.6:
        term = _node_term(chance, world)
        if term:
            affinity.setdefault("nodeAffinity", {})[PREFERRED] = [{**weight, "preference": term}]
    for field in ("podAffinity", "podAntiAffinity"):
        if chance.random() < 0.4:
            affinity.setdefault(field, {})[PREFERRED] = [{**weight, "podAffinityTerm": _term(chance)}]


def _toleration(chance: Random) -> Json:
    kind = chance.random()
    if kind < 0.15:
        return {"operator": "Exists"}
    if kind < 0.5:
        effect = {"effect": chance.choice(("NoSchedule", "NoExecute"))} if chance.random() < 0.5 else {}
        return {"key": chance.choice(("gpu", "team")), "operator": "Exists", **effect}
    if kind < 0.6:
        key = chance.choice(("unschedulable", "not-ready", "disk-pressure", "memory-pressure"))
        return {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoSchedule"}
    effect = {"effect": "NoSchedule"} if chance.random() < 0.5 else {}
    key, value = chance.choice(("gpu", "team")), chance.choice(("yes", "no"))
    return {"key": key, "operator": "Equal", "value": value, **effect}
