"""`bayplan topology propose` and `show`."""

import json

import yaml

from tests.webhook.calls import EXAMPLES

SUPERPOD = str(EXAMPLES / "clusters" / "superpod-32.yaml")
NVL72 = str(EXAMPLES / "clusters" / "nvl72-8racks.yaml")


def test_propose_writes_a_topology_for_each_pool(run):
    """Two pools of different labels: two objects, which kubectl could apply."""
    status, out, _ = run("topology", "propose", "-c", SUPERPOD, NVL72)
    topologies = list(yaml.safe_load_all(out))
    assert status == 0
    assert {topology["kind"] for topology in topologies} == {"Topology"}
    assert [topology["spec"]["levels"][1]["nodeLabel"] for topology in topologies] == [
        "cloud.provider.com/topology-rack",
        "cloud.provider.com/topology-block",
    ]


def test_propose_says_where_labels_tell_nothing(run, tmp_path):
    """Exit status 1, and what would help."""
    file = tmp_path / "node.yaml"
    file.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
    status, out, err = run("topology", "propose", "-c", str(file))
    assert (status, out) == (1, "")
    assert "label zones and racks" in err


def test_show_draws_domains_with_their_numbers(run):
    """Each rack with its nodes and free GPUs; hosts by name only when asked for."""
    status, out, _ = run("topology", "show", "-c", SUPERPOD)
    assert status == 0
    assert "rack-3  . . . . . . . .  64 of 64 GPUs free" in out
    assert "dgx-01" not in out
    assert "dgx-01" in run("topology", "show", "-c", SUPERPOD, "--nodes")[1]


def test_show_counts_the_same_in_json(run):
    """One entry a topology, domains nested."""
    _, out, _ = run("topology", "show", "-c", SUPERPOD, "-o", "json")
    (topology,) = json.loads(out)["topologies"]
    block = topology["root"]["domains"][0]
    assert (topology["name"], topology["reservableLevel"]) == ("superpod", "cloud.provider.com/topology-rack")
    assert [rack["nodes"] for rack in block["domains"]] == [8, 8, 8, 8]


def test_show_of_an_unknown_name_lists_the_known_ones(run):
    """Exit status 2."""
    status, _, err = run("topology", "show", "-c", SUPERPOD, "-t", "dragonfly")
    assert status == 2
    assert "the cluster has superpod" in err


def test_without_files_both_ask_the_cluster_that_runs(run, tmp_path):
    """As every command that looks at a cluster does; one that cannot be reached is an error in words."""
    kubeconfig = tmp_path / "admin.conf"
    for action in ("propose", "show"):
        status, _, err = run("topology", action, "--kubeconfig", str(kubeconfig))
        assert status == 2
        assert f"{kubeconfig}: gives no way to a cluster" in err
