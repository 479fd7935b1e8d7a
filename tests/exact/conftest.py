"""Some chunks of instances are planned as only large clusters are: domains in parts, bounds over levels."""

import pytest

from planner.cluster import capacity
from planner.search.packing import domain_packing


@pytest.fixture(autouse=True)
def in_parts_of_two(request, monkeypatch):
    """Domains of more than two children, and parts of more than two parts, are divided."""
    if hasattr(request.node, "callspec") and request.node.callspec.params.get("chunk", 0) % 2:
        monkeypatch.setattr(capacity, "WIDE", 2)
        monkeypatch.setattr(capacity, "CHUNK", 2)


@pytest.fixture(autouse=True)
def with_joint_bounds(request, monkeypatch):
    """In two of four chunks, one of them in parts, no sum is tried before bounds over two levels serve."""
    if hasattr(request.node, "callspec") and request.node.callspec.params.get("chunk", 0) % 4 > 1:
        for state in domain_packing._SEPARATE_BOUNDS:
            monkeypatch.setitem(domain_packing._SEPARATE_BOUNDS, state, 0)
        monkeypatch.setattr(domain_packing, "_FEW_DOMAINS", -1)
