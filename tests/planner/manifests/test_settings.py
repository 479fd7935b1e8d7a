"""Tests reading KAI's ConfigMap of policies, as our recipe prints it and in other forms."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from planner.manifests.cluster import read
from planner.manifests.settings import with_config
from planner.model.errors import Where
from planner.model.settings import DEFAULTS, SchedulerSettings

RECIPE: dict[str, Any] = {
    "enabled": True,
    "policies": [
        {"name": "nvlink-locality", "weight": 100, "topology": "nvlink", "strategy": "pack"},
        {"name": "numa-locality", "weight": 50, "topology": "numa", "strategy": "pack"},
        {"name": "nvswitch-preference", "weight": 80, "topology": "nvswitch", "strategy": "prefer"},
    ],
    "levels": [
        {"name": "nvlink-domain", "label": "gpu.topology/nvlink-domain"},
        {"name": "node", "label": "kubernetes.io/hostname"},
    ],
}


def settings(config: Any) -> SchedulerSettings:
    """The settings in a ConfigMap with this content."""
    item = {"metadata": {"name": "kai-scheduler-config"}, "data": {"config.yaml": yaml.safe_dump(config)}}
    return with_config(DEFAULTS, item, Where("c.yaml"))


@pytest.mark.parametrize("config", [RECIPE, {"topologyAwareScheduling": RECIPE}], ids=["flat", "nested"])
def test_the_recipes_policies_are_read_nested_and_flat(config: Any) -> None:
    """Its own words for topologies, which its levels do not name, mean an NVLink domain or the host."""
    read = settings(config)
    assert {name: (policy.level, policy.strategy) for name, policy in read.policies.items()} == {
        "nvlink-locality": ("nvlink-domain", "pack"),
        "numa-locality": ("kubernetes.io/hostname", "pack"),
        "nvswitch-preference": ("kubernetes.io/hostname", "prefer"),
    }
    assert read.aliases["nvlink-domain"] == "gpu.topology/nvlink-domain"


def test_a_level_of_that_name_is_what_a_policy_means() -> None:
    """Who gives the word a label has it so."""
    levels = [{"name": "nvlink", "label": "example.com/nvlink"}]
    assert settings({**RECIPE, "levels": levels}).policies["nvlink-locality"].level == "nvlink"


def test_nod_ais_object_says_what_its_config_map_says() -> None:
    """A TopologySchedulerConfig has the same spec; it was ignored."""
    spec = {"topologyConstraints": {"maxNodesPerLeaf": 8}, "scoringWeights": {"topologyAlignment": 1}}
    head = {"apiVersion": "topology.scheduler/v1alpha1", "kind": "TopologySchedulerConfig"}
    moment = read([("c.yaml", {**head, "metadata": {"name": "config"}, "spec": spec})])
    read_settings = moment.base.settings
    assert (read_settings.nodes_per_leaf, read_settings.weights["topologyAlignment"]) == (8, 1.0)
