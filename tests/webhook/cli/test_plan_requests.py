"""`bayplan plan` on requests beyond one level: ranks, leaf-spine wishes, named policies, elastic gangs."""

import json

import pytest
import yaml

from tests.webhook.calls import EXAMPLES
from webhook.cli.main import main

SUPERPOD = str(EXAMPLES / "clusters" / "superpod-32.yaml")


@pytest.fixture
def planned(capsys, tmp_path):
    """Plan a Job of so many pods of eight GPUs with these annotations, beside these further objects."""

    def planning(pods, annotations=None, *objects, words=("-o", "json"), **spec):
        container = {"name": "main", "image": "train", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "job", "annotations": annotations or {}},
            "spec": {
                "parallelism": pods,
                "completions": pods,
                "completionMode": "Indexed",
                "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
                **spec,
            },
        }
        manifest, cluster_file = tmp_path / "job.yaml", tmp_path / "more.yaml"
        manifest.write_text(yaml.safe_dump(job))
        cluster_file.write_text(yaml.safe_dump_all(objects))
        main(("plan", "-c", SUPERPOD, *([str(cluster_file)] if objects else []), "-f", str(manifest), *words))
        out = capsys.readouterr().out
        return json.loads(out)["gangs"][0] if "json" in words else out

    return planning


def test_explain_shows_the_ranks(planned):
    """In the order of the topology, by runs of one node."""
    assert "ranks of main: 0 on dgx-05, 1 on dgx-06, 2 on dgx-07" in planned(3, words=("--explain",))


def test_the_plan_of_what_is_suspended_is_told_as_a_preview(planned):
    """It holds nothing until it is resumed: the next one may get the same place."""
    assert planned(4)["warnings"] == []
    assert planned(4, suspend=True)["warnings"] == [
        "is suspended, and holds nothing until it is resumed: this is what it would get now"
    ]


def test_a_preferred_domain_is_followed(planned):
    """The rack by its name, as nod-ai's annotation has it."""
    wish = {"topology.scheduler/preferred-domain": "rack-2"}
    assert planned(2, wish)["domain"] == ["su-1", "rack-2"]
    unknown = planned(2, {"topology.scheduler/preferred-domain": "leaf-9"})
    assert unknown["decision"] == "admitted"
    assert "known are rack-1, rack-2" in unknown["warnings"][0]


def test_a_distributed_job_touches_as_many_racks_as_it_can(planned):
    """Four pods in four racks; nothing is held whole."""
    spread = planned(4, {"topology.scheduler/placement-strategy": "distributed"})
    assert len({assignment["node"] for assignment in spread["assignments"]}) == 4
    assert (spread["domain"], spread["reserves"]) == (["su-1"], [])


def test_limits_of_the_config_map_hold(planned):
    """At most two nodes of a leaf: four pods are on two racks."""
    config = {"kind": "SchedulerConfig", "spec": {"topologyConstraints": {"maxNodesPerLeaf": 2}}}
    limits = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "topology-scheduler-config"},
        "data": {"config.yaml": yaml.safe_dump(config)},
    }
    key = {"topology.scheduler/gpu-count": "32", "bayplan.dev/reserve": "nodes"}
    assert planned(4, key)["domain"] == ["su-1", "rack-1"]
    assert planned(4, key, limits)["domain"] == ["su-1"]


def test_a_job_with_a_least_size_gets_what_there_is(planned):
    """Eight nodes of a rack are free; of 4 to 12 pods required in one rack eight have a place."""
    keys = {
        "bayplan.dev/gang-min": "4",
        "kai.scheduler/topology": "superpod",
        "kai.scheduler/topology-required-placement": "cloud.provider.com/topology-rack",
    }
    placed = planned(12, keys)
    assert placed["decision"] == "admitted"
    assert sum(assignment["count"] for assignment in placed["assignments"]) == 8
    assert "of 4 to 12 have a place" in placed["message"]
    assert planned(3, {"bayplan.dev/gang-min": "4"})["reason"] == "MinimumAboveMaximum"
