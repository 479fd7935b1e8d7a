"""The named function of the policies over node pools."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policies.helpers import Json, cluster
from webhook.policy.functions.node_pools import NODE_POOL, reached
from webhook.variables.cluster import cluster_variable

POOLS: Json = {
    "h100": {"selector": {NODE_POOL: "h100"}, "topology": "hopper"},
    "gb200": {"selector": {NODE_POOL: "gb200", "arch": "arm64"}, "topology": "blackwell"},
    "bare": {"selector": {}, "topology": ""},
}


def pod(*terms: dict[str, list[str]], **selector: str) -> Json:
    """A pod with a node selector and, for each term, an affinity of `In` requirements."""
    listed = [
        {
            "matchExpressions": [
                {"key": key, "operator": "In", "values": values} for key, values in term.items()
            ]
        }
        for term in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    spec: Json = {"nodeSelector": {key.replace("pool", NODE_POOL): value for key, value in selector.items()}}
    return {"spec": {**spec, "affinity": {"nodeAffinity": required}} if listed else spec}


@pytest.mark.parametrize(
    ("asking_pod", "labels", "pools"),
    [
        (pod(), {}, []),
        (pod(pool="h100"), {}, ["h100"]),
        (pod(), {NODE_POOL: "h100"}, ["h100"]),
        (pod(pool="gb200"), {}, []),
        (pod(pool="gb200", arch="arm64"), {}, ["gb200"]),
        (pod({"arch": ["arm64"]}, pool="gb200"), {}, ["gb200"]),
        (pod({NODE_POOL: ["h100", "gb200"], "arch": ["arm64"]}), {}, ["h100", "gb200"]),
        (pod({NODE_POOL: ["h100"]}, {NODE_POOL: ["gb200"], "arch": ["arm64"]}), {}, ["h100", "gb200"]),
        (pod(pool="gb200", arch="arm64"), {NODE_POOL: "h100"}, ["h100", "gb200"]),
    ],
)
def test_a_pool_is_reached_where_all_of_its_selector_is_asked_for(
    asking_pod: Json, labels: Json, pools: list[str]
) -> None:
    """By selector, affinity or label, together; a pool without a selector is nobody's choice."""
    assert reached(asking_pod, labels, POOLS) == pools


@pytest.mark.parametrize("spec", [None, {}, [], {"nodeSelector": 3}, {"affinity": {"nodeAffinity": []}}])
def test_malformed_selectors_reach_nothing(spec: Any) -> None:
    """The API server refuses them; nothing fails here."""
    assert reached({"spec": spec}, None, POOLS) == []


def test_the_facts_give_each_pool_its_selector_and_topology() -> None:
    """As the function needs them."""
    for name in ("superpod-32", "nvl72-8racks", "mig-pool"):
        for pool in cluster_variable(cluster(name))["nodePools"].values():  # type: ignore[attr-defined]
            assert {"selector", "topology", "nodes", "byLabel"} == set(pool)
