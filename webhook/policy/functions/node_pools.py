"""The CEL function over node pools: which pools a pod's selectors ask for. Plain JSON.

A malformed part of a pod counts as missing: the API server reports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.cel import Function
from webhook.workloads.node_affinity import REQUIRED

Json = Any


NODE_POOL = "kai.scheduler/node-pool"


def reached(pod: Json, labels: Json, pools: Json) -> list[str]:
    """`pools.reached(pod, gang.labels, cluster.nodePools)`: the names of the node pools that the pod's
    selectors ask for.

    A pool is included if each label of its selector is asked for by the pod's node selector, by an `In`
    expression of its required node affinity (any of the values, any of the terms), or by the workload's label
    `kai.scheduler/node-pool`. [] for a pod that asks for no pool.
    """
    alternatives = list(_alternatives(_map(_map(pod).get("spec")), str(_map(labels).get(NODE_POOL, ""))))
    return [
        name
        for name, pool in _map(pools).items()
        if pool["selector"]
        and any(
            all(value in alternative.get(key, ()) for key, value in pool["selector"].items())
            for alternative in alternatives
        )
    ]


def _alternatives(spec: Mapping[str, Json], labelled: str) -> Iterator[dict[str, set[str]]]:
    """Yields the accepted values by label key, once for each term of the pod's required node affinity."""
    stated = {str(key): {str(value)} for key, value in _map(spec.get("nodeSelector")).items()}
    node = _map(_map(_map(spec.get("affinity")).get("nodeAffinity")).get(REQUIRED))
    for term in _maps(node.get("nodeSelectorTerms")) or [{}]:
        allowed = {key: set(values) for key, values in stated.items()}
        for expression in _maps(term.get("matchExpressions")):
            if expression.get("operator") == "In" and isinstance(expression.get("values"), list):
                allowed.setdefault(str(expression.get("key")), set()).update(map(str, expression["values"]))
        if labelled:
            allowed.setdefault(NODE_POOL, set()).add(labelled)
        yield allowed


def _map(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _maps(value: Json) -> list[Mapping[str, Json]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


POOL_FUNCTIONS: Mapping[str, Function] = {"pools.reached": Function(reached, 3, 3)}
"""Name in CEL → the function, the fewest and the most arguments."""
