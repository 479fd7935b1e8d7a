"""The function of policies over node pools: which pools a pod's selectors allow. Plain JSON.

What is malformed counts as missing: the API server says what is wrong with a pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.cel import Function
from webhook.workloads.node_affinity import REQUIRED

Json = Any


NODE_POOL = "kai.scheduler/node-pool"


def reached(pod: Json, labels: Json, pools: Json) -> list[str]:
    """`pools.reached(pod, gang.labels, cluster.nodePools)`: the names of the pools that a pod may go to.

    A pool counts where each label of its selector is asked for: by the pod's node selector, by an `In` of its
    required node affinity (each value, in each of its terms), or by the workload's label
    `kai.scheduler/node-pool`. Who asks for no pool gets none.
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
    """Yields what is requested, one entry per term of the affinity: the acceptable values by label key."""
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
