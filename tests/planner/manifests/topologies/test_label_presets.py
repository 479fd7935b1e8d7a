"""Tests every source of topology labels with the keys of its documentation: proposed, planned and shown."""

from __future__ import annotations

import pytest
import yaml

from planner.cluster.build import snapshot
from planner.manifests.cluster import read
from planner.manifests.topologies.proposal import propose
from planner.model.topology import HOSTNAME
from planner.planning.plan import plan
from tests.builders import gang, node
from webhook.cli.main import main

SOURCES = {
    "labels": ("topology.kubernetes.io/region", "topology.kubernetes.io/zone"),
    "recipe": ("cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"),
    "topograph": (
        "fabric.topograph.run/tier-2",
        "fabric.topograph.run/tier-1",
        "fabric.topograph.run/tier-0",
        "accelerator.topograph.run/domain",
        "accelerator.topograph.run/sub-domain",
    ),
    "topograph-0.3": (
        "network.topology.nvidia.com/core",
        "network.topology.nvidia.com/spine",
        "network.topology.nvidia.com/leaf",
        "network.topology.nvidia.com/accelerator",
    ),
    "topograph-0.1": (
        "network.topology.nvidia.com/datacenter",
        "network.topology.nvidia.com/spine",
        "network.topology.nvidia.com/block",
        "network.topology.nvidia.com/accelerator",
    ),
    "aws": (
        "topology.k8s.aws/network-node-layer-1",
        "topology.k8s.aws/network-node-layer-2",
        "topology.k8s.aws/network-node-layer-3",
        "topology.k8s.aws/ultraserver-id",
    ),
    "gcp": (
        "cloud.google.com/gce-topology-block",
        "cloud.google.com/gce-topology-subblock",
        "cloud.google.com/gce-topology-host",
    ),
    "oci-rdma": (
        "oci.oraclecloud.com/rdma.hpc_island_id",
        "oci.oraclecloud.com/rdma.network_block_id",
        "oci.oraclecloud.com/rdma.local_block_id",
        "oci.oraclecloud.com/rdma.host_id",
    ),
    "oci-host": ("oci.oraclecloud.com/host.network_block_id", "oci.oraclecloud.com/host.rack_id"),
    "coreweave": (
        "backend.coreweave.cloud/fabric",
        "backend.coreweave.cloud/superpod",
        "backend.coreweave.cloud/leafgroup",
        "node.coreweave.cloud/rack",
        "ds.coreweave.com/nvlink.domain",
    ),
    "nebius": (
        "topology.nebius.com/gpu-cluster-id",
        "topology.nebius.com/tier-2",
        "topology.nebius.com/tier-1",
        "topology.nebius.com/tier-0",
    ),
}
"""Coarse to fine, whatever way the source counts."""
CLIQUE = "nvidia.com/gpu.clique"


def nodes(keys: tuple[str, ...], **extra_labels: str):
    """Eight nodes, divided in two at each level: the values of a level repeat under other parents."""
    members = []
    for place in range(8):
        labels = {key: f"v{place >> max(0, 2 - depth) & 1}" for depth, key in enumerate(keys)}
        members.append(node(f"n{place}", labels={**labels, **extra_labels}))
    return members


@pytest.mark.parametrize("source", SOURCES)
def test_each_source_is_proposed_coarse_to_fine(source):
    """With its own name, its keys in their order, and the host."""
    (proposal,) = propose(nodes(SOURCES[source]))
    assert (proposal.source, proposal.topology.levels) == (source, (*SOURCES[source], HOSTNAME))


@pytest.mark.parametrize("source", SOURCES)
def test_each_source_with_region_zone_and_nvlink_cliques(source):
    """These lie above and below whatever the source says."""
    generic = SOURCES["labels"]
    own = () if source == "labels" else SOURCES[source]
    (proposal,) = propose(nodes((*generic, *own), **{CLIQUE: "c0de.1"}))
    assert proposal.topology.levels == (*generic, *own, CLIQUE, HOSTNAME)


@pytest.mark.parametrize("source", SOURCES)
def test_a_gang_is_planned_at_each_level_of_each_source(source):
    """What is proposed serves: required at a level, the gang is in one domain of it."""
    members = nodes(SOURCES[source])
    (proposal,) = propose(members)
    moment = snapshot(members, [proposal.topology])
    for depth, level in enumerate(proposal.topology.levels, start=1):
        answer = plan(moment, gang(1, required=level))
        assert answer.decision == "admitted"
        assert len(answer.domain) >= depth


@pytest.mark.parametrize("key", ["topology.kubernetes.io/zone", "node.coreweave.cloud/rack", CLIQUE])
def test_an_empty_value_is_no_value(key):
    """A label without a value makes no level."""
    assert propose([node("a", labels={key: ""}), node("b", labels={key: ""})]) == ()


@pytest.mark.parametrize("source", SOURCES)
def test_propose_and_show_speak_of_each_source(source, capsys, tmp_path):
    """By the commands: an object that is read back, and every domain drawn."""
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": member.name, "labels": dict(member.labels)},
            "status": {"allocatable": {"nvidia.com/gpu": "8", "pods": "110"}},
        }
        for member in nodes(SOURCES[source])
    ]
    file = tmp_path / "nodes.yaml"
    file.write_text(yaml.safe_dump_all(items))
    assert main(("topology", "propose", "-c", str(file))) == 0
    (manifest,) = yaml.safe_load_all(capsys.readouterr().out)
    (again,) = read([("t.yaml", manifest)]).topologies
    assert again.levels == (*SOURCES[source], HOSTNAME)
    (tmp_path / "topology.yaml").write_text(yaml.safe_dump(manifest))
    assert main(("topology", "show", "-c", str(tmp_path))) == 0
    assert "64 of 64 GPUs free" in capsys.readouterr().out
