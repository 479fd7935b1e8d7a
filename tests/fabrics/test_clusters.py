"""The example clusters are what their generator writes, and read as the fabrics that they stand for."""

from __future__ import annotations

from collections import Counter

import pytest
import yaml

from planner.cluster.snapshot import Snapshot
from tests.fabrics import generate
from webhook.policy.engine.device_selectors import read_cluster


def cluster(*names: str) -> Snapshot:
    """The picture that these files give."""
    texts = [(name, (generate.CLUSTERS / name).read_text()) for name in names]
    return read_cluster((name, yaml.load(text, Loader=yaml.CSafeLoader)) for name, text in texts)


@pytest.mark.parametrize("name", generate.FILES)
def test_the_file_is_what_the_generator_writes(name: str) -> None:
    """Nobody edits a generated cluster by hand."""
    assert (generate.CLUSTERS / name).read_text() == generate.text_of(generate.FILES[name]())


def test_the_superpod_unit_has_32_nodes_in_four_racks() -> None:
    """Eight nodes a rack, 256 GPUs, one node tainted and one cordoned."""
    picture = cluster("superpod-32.yaml")
    racks = Counter(node.labels[generate.RACK] for node in picture.nodes.values())
    assert racks == {f"rack-{n}": 8 for n in range(1, 5)}
    assert sum(node.allocatable[generate.GPU] for node in picture.nodes.values()) == 256
    assert [name for name, node in picture.nodes.items() if node.cordoned] == ["dgx-32"]
    assert [t.key for t in picture.nodes["dgx-31"].taints] == ["example.com/burn-in"]


def test_the_nvl72_racks_show_the_trays_of_the_discovery() -> None:
    """119 trays in racks of 18, 18, 17, 16, 15, 14, 11 and 10, each rack one clique; nine lack a rail."""
    picture = cluster("nvl72-8racks.yaml")
    cliques = Counter(node.labels[generate.CLIQUE] for node in picture.nodes.values())
    assert sorted(cliques.values(), reverse=True) == [18, 18, 17, 16, 15, 14, 11, 10]
    assert (
        len({(node.labels[generate.RACK], node.labels[generate.CLIQUE]) for node in picture.nodes.values()})
        == 8
    )
    assert Counter(node.allocatable["rdma/ib"] for node in picture.nodes.values()) == {4: 110, 3: 9}


def test_only_success_is_mig_capacity() -> None:
    """The node whose boards are still being split offers no slice now."""
    picture = cluster("mig-pool.yaml")
    slices = {name: node.allocatable.get("nvidia.com/mig-3g.40gb", 0) for name, node in picture.nodes.items()}
    assert (slices["h100-mig-1"], slices["h100-mig-3"]) == (8, 0)


def test_two_fabrics_in_one_cluster_are_two_topologies() -> None:
    """Nodes of the SuperPOD and of the NVL72 racks belong to one topology each."""
    picture = cluster("superpod-32.yaml", "nvl72-8racks.yaml")
    assert {topology.name for topology in picture.topologies} == {"superpod", "nvl72"}
    assert len(picture.nodes) == 32 + 119
