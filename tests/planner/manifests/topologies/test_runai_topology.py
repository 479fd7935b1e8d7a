"""Tests a topology in the JSON format of Run:ai's API among the files of a cluster."""

from __future__ import annotations

import pytest

from planner.manifests.cluster import read
from planner.model.errors import InputError
from planner.model.schedulers import KAI

RUNAI = {
    "levels": [
        "cloud.provider.com/topology-block",
        "cloud.provider.com/topology-rack",
        "kubernetes.io/hostname",
    ],
    "name": "default-topology",
    "clusterId": "1",
}


def test_a_topology_as_runais_api_takes_it_is_kais_of_that_name() -> None:
    """Its levels in their order; KAI, which reads it, is there."""
    snapshot = read([("topology.json", RUNAI)])
    (topology,) = snapshot.topologies
    assert (topology.name, list(topology.levels)) == ("default-topology", RUNAI["levels"])
    assert snapshot.base.schedulers.topologies[KAI] == {"default-topology": tuple(RUNAI["levels"])}


def test_its_faults_are_told_as_those_of_a_topology() -> None:
    """A level that is no text, and a document that is neither."""
    with pytest.raises(InputError, match="nodeLabel"):
        read([("topology.json", {**RUNAI, "levels": [1]})])
    with pytest.raises(InputError, match="no kind"):
        read([("topology.json", {"levels": ["rack"]})])
