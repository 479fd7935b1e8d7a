"""Tests reading LimitRanges and ResourceQuotas from cluster files."""

from __future__ import annotations

import pytest

from planner.manifests.cluster import read
from planner.model.errors import InputError
from webhook.variables.cluster import cluster_variable


def quota(**changes):
    """A quota of 64 CPUs, of which 60 are used."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "research"},
        "spec": {"hard": {"cpu": "64", "requests.nvidia.com/gpu": "8", "pods": "20"}},
        "status": {"used": {"cpu": "60500m"}},
        **changes,
    }


def limit_range(*entries):
    """A LimitRange in the same namespace."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "sizes", "namespace": "research"},
        "spec": {"limits": list(entries)},
    }


def limits(*objects):
    """The fact `limits`."""
    return cluster_variable(read([("cluster.yaml", list(objects))]))["limits"]


def test_a_quota_has_left_what_is_not_used():
    """`cpu` alone means requests; what the API server has not counted is unused."""
    (stored_quota,) = limits(quota())["research"]["quotas"]
    assert stored_quota == {
        "name": "team",
        "hard": {"requests.cpu": 64_000, "requests.nvidia.com/gpu": 8, "pods": 20},
        "left": {"requests.cpu": 3_500, "requests.nvidia.com/gpu": 8, "pods": 20},
    }


def test_a_quota_that_counts_only_some_pods_is_left_aside():
    """Nobody knows from a template alone whether it is one of them."""
    assert limits(quota(spec={"hard": {"cpu": "1"}, "scopes": ["BestEffort"]})) == {}


def test_a_limit_range_bounds_containers_and_pods():
    """In base units."""
    namespaces = limits(limit_range({"type": "Container", "max": {"cpu": "8"}, "min": {"memory": "1Gi"}}))
    assert namespaces["research"]["ranges"] == [
        {"name": "sizes", "type": "Container", "min": {"memory": 2**30}, "max": {"cpu": 8000}}
    ]


@pytest.mark.parametrize(
    "bad", [quota(spec={"hard": {"cpu": "lots"}}), limit_range({"max": ["8"]}), quota(spec=["x"])]
)
def test_malformed_ones_are_refused_by_field(bad):
    """The error names file, object and field."""
    with pytest.raises(InputError, match=r"cluster\.yaml: (LimitRange|ResourceQuota) research/.*spec"):
        limits(bad)
