"""Topologies are found by name."""

from planner.model.topology import HOSTNAME, Topology, topology_named

FABRIC, ROWS = Topology("fabric", ("block", HOSTNAME)), Topology("rows", ("row", HOSTNAME))


def test_a_topology_is_found_by_name():
    """Among several."""
    assert topology_named((FABRIC, ROWS), "rows") is ROWS


def test_a_topology_that_was_deleted_is_none():
    """A reservation may still name it."""
    assert topology_named((FABRIC,), "rows") is None
