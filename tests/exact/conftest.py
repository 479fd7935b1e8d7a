"""Every other chunk of instances is planned with all domains in parts, as only wide ones are otherwise."""

import pytest

from planner.cluster import capacity


@pytest.fixture(autouse=True)
def in_parts_of_two(request, monkeypatch):
    """Domains of more than two children, and parts of more than two parts, are divided."""
    if hasattr(request.node, "callspec") and request.node.callspec.params.get("chunk", 0) % 2:
        monkeypatch.setattr(capacity, "WIDE", 2)
        monkeypatch.setattr(capacity, "CHUNK", 2)
