"""Tests topologies that are proposed from labels, with the count of their domains."""

from dataclasses import replace

import pytest

from planner.cluster.census.domains import census
from planner.manifests.cluster import read
from planner.manifests.topologies.label_presets import PRESETS
from planner.manifests.topologies.proposal import API_VERSIONS, propose, topology_manifest
from planner.model.topology import HOSTNAME
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import cluster, gang, node, racks

BLOCK, RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"


def recipe(count: int, **extra_labels: str):
    """Nodes with the recipe's labels, four per rack."""
    return [
        node(f"n{i}", labels={BLOCK: "b", RACK: f"r{i // 4}", **extra_labels}, gpu=8)
        for i in range(1, count + 1)
    ]


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_every_source_is_recognised_by_its_labels(preset):
    """The levels are the source's own, coarse to fine, and the host."""
    nodes = [node(f"n{i}", labels=dict.fromkeys(preset.levels, f"v{i}")) for i in range(3)]
    (proposal,) = propose(nodes)
    assert proposal.source == preset.name
    assert proposal.topology.levels == (*preset.levels, HOSTNAME)


def test_nodes_of_two_sources_get_a_topology_each():
    """Their node-pool label, where it tells them apart, becomes the selector."""
    pool = "kai.scheduler/node-pool"
    gcp = [
        node(f"g{i}", labels={"cloud.google.com/gce-topology-block": f"b{i}", pool: "gcp"}) for i in range(2)
    ]
    first, second = propose([*gcp, *recipe(8, **{pool: "own"})])
    assert (first.source, first.nodes, first.topology.node_selector) == ("recipe", 8, {pool: "own"})
    assert (second.source, second.nodes, second.topology.node_selector) == ("gcp", 2, {pool: "gcp"})


def test_a_node_without_a_finer_label_joins_the_others_and_is_counted():
    """One of nine nodes has no rack: it is no topology of its own, and a note says so."""
    (proposal,) = propose([*recipe(8), node("bare", labels={BLOCK: "b"})])
    assert proposal.nodes == 9
    assert any(note.startswith(f"{RACK}: 1 of 9 nodes") for note in proposal.notes)


def test_values_that_repeat_under_different_parents_are_noted():
    """Rack r1 of two blocks is two racks."""
    nodes = [node(f"{b}{r}", labels={BLOCK: b, RACK: r}) for b in ("b1", "b2") for r in ("r1", "r2")]
    (proposal,) = propose(nodes)
    assert any("values repeat" in note for note in proposal.notes)


def test_nodes_that_tell_nothing_get_no_proposal():
    """A hostname alone makes no level."""
    assert propose([node("a"), node("b")]) == ()


@pytest.mark.parametrize("kind", API_VERSIONS)
def test_what_is_proposed_is_read_back(kind):
    """In each dialect the object means the same levels and the same nodes."""
    (proposal,) = propose(recipe(8))
    pool = {"kai.scheduler/node-pool": "own"}
    topology = replace(proposal.topology, node_selector=pool)
    (again,) = read([("t.yaml", topology_manifest(topology, kind))]).topologies
    assert (again.levels, again.node_selector) == (topology.levels, pool)


def test_a_domain_is_counted_with_its_nodes_gpus_and_holders():
    """A held host's GPUs are not free, and its rack is no longer pristine."""
    moment = racks(2, 4)
    group = gang(2, name="default/Job/a")
    held = moment.with_reservation(reservation_for(moment, group, plan(moment, group)))
    whole = census(held, "topo")
    first, second = whole.domains
    assert (whole.nodes, whole.gpus, whole.free) == (8, 64, 32)
    assert (first.holders, first.free, first.pristine) == (("default/Job/a",), 0, False)
    assert (second.holders, second.free, second.pristine) == ((), 32, True)


def test_cordoned_nodes_give_no_free_gpus():
    """They are counted apart; bound pods lower what is free."""
    whole = census(cluster("r1: a b\nr1: c cordoned\nr2: d used=3"), "topo")
    assert (whole.nodes, whole.unusable, whole.gpus, whole.free) == (4, 1, 32, 21)
