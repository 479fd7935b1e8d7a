"""Tests reading ResourceClaims and their templates in each API version."""

from __future__ import annotations

import pytest

from planner.devices.claims import ClaimRequest, ResourceClaim
from planner.model.errors import InputError
from webhook.policy.engine.device_selectors import read_cluster
from webhook.variables.cluster import cluster_variable


def template(*requests, name="gpus"):
    """A ResourceClaimTemplate with these device requests."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"spec": {"devices": {"requests": list(requests)}}},
    }


def read_one(request):
    """The request in a template of one request."""
    (claim,) = read_cluster([("", template(request))]).base.claims.templates.values()
    return claim


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"exactly": {"deviceClassName": "gpu.nvidia.com", "count": 8}}, ClaimRequest("gpu.nvidia.com", 8)),
        ({"exactly": {"deviceClassName": "gpu.nvidia.com"}}, ClaimRequest("gpu.nvidia.com", 1)),
        ({"deviceClassName": "mig.nvidia.com", "count": 2}, ClaimRequest("mig.nvidia.com", 2)),
        (
            {"exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}},
            ClaimRequest("gpu.nvidia.com", -1),
        ),
        (
            {
                "firstAvailable": [
                    {"deviceClassName": "a.example", "count": 3},
                    {"deviceClassName": "b.example"},
                ]
            },
            ClaimRequest("a.example", 3, (), (ClaimRequest("b.example", 1),)),
        ),
    ],
)
def test_each_way_to_ask_for_devices_is_read(request_, expected):
    """v1 and v1beta2 with `exactly`, v1beta1 without; all of a node is an unknown count."""
    assert read_one(request_) == ResourceClaim((expected,))


def test_claims_templates_and_compute_domains_are_facts():
    """By namespace and name."""
    claim = {**template({"deviceClassName": "gpu.nvidia.com"}, name="one"), "kind": "ResourceClaim"}
    claim["spec"] = claim["spec"]["spec"]
    domain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "train"},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "train-channel"}}},
    }
    facts = cluster_variable(read_cluster([("", [claim, template(), domain])]))
    assert facts["claims"] == {
        "claims": {"team/one": [{"class": "gpu.nvidia.com", "count": 1}]},
        "templates": {"team/gpus": []},
        "domains": {"default/train": "train-channel"},
    }


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"exactly": {"count": "eight"}}, "exactly|count"),
        ({"exactly": ["x"]}, "exactly"),
        ({"deviceClassName": 3}, "deviceClassName"),
        ({"exactly": {"count": -1}}, "exactly.count"),
        ({"firstAvailable": [{"allocationMode": "all"}]}, r"firstAvailable\[0\].allocationMode"),
    ],
)
def test_a_malformed_claim_is_refused_by_field(request_, field):
    """With the place of the request."""
    with pytest.raises(InputError, match=rf"spec\.spec\.devices\.requests\[0\]\.({field})"):
        read_one(request_)


def test_the_ways_in_which_nodes_are_split_are_counted():
    """Once each, without the slices that a node has none of."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "H100"}},
            "status": {"allocatable": {"nvidia.com/mig-1g.10gb": count, "nvidia.com/mig-3g.40gb": "0"}},
        }
        for name, count in (("a", "7"), ("b", "7"), ("c", "14"))
    ]
    assert cluster_variable(read_cluster([("", nodes)]))["migNodes"] == [
        {"product": "H100", "slices": {"1g.10gb": 7}, "nodes": 2},
        {"product": "H100", "slices": {"1g.10gb": 14}, "nodes": 1},
    ]
