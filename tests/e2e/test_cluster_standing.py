"""`bayplan queue`, `why`, `top` and `reservations` on a real control plane, also as a kubectl plugin."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.hook import BAYPLAN
from tests.e2e.replicas import RACK, Replicas
from tests.e2e.serving import HELD, WAITS, bayplan, holding_and_waiting
from tests.e2e.stage import Cluster


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """One rack of two nodes: one Job holds it, another waits for it."""
    with holding_and_waiting(cluster, tmp_path_factory.mktemp("standing")) as replicas:
        yield replicas


@pytest.mark.usefixtures("serving")
def test_the_queue_shows_who_waits_and_for_what(cluster: Cluster) -> None:
    """As a table and as JSON; by namespace too."""
    status, out = bayplan(cluster, "queue")
    assert status == 0
    assert WAITS in out
    assert HELD not in out.splitlines()[1].split()[1]
    _, shown = bayplan(cluster, "queue", "-o", "json")
    (entry,) = json.loads(shown)["items"]
    assert (entry["name"], entry["position"], entry["pods"]["gated"], entry["gpus"]) == (WAITS, 1, 2, 16)
    assert entry["reason"]
    assert bayplan(cluster, "queue", "-n", "other") == (0, "no gang waits in other\n")


@pytest.mark.usefixtures("serving")
def test_why_tells_where_a_gang_is_or_what_it_waits_for(cluster: Cluster) -> None:
    """Exit status 0 for one that has its place, 1 for one that waits or that nobody knows."""
    status, out = bayplan(cluster, "why", HELD)
    assert (status, "2 of 2 pods are on nodes" in out) == (0, True), out
    status, out = bayplan(cluster, "why", WAITS)
    assert (status, f"{WAITS} waits: 1 of 1 in the queue" in out) == (1, True), out
    assert f"reserved by {HELD}" in out
    assert bayplan(cluster, "why", "research/Job/none") == (
        1,
        "research/Job/none: there is no such object, or it has ended\n",
    )


@pytest.mark.usefixtures("serving")
def test_top_shows_the_racks_with_their_gpus_and_gangs(cluster: Cluster) -> None:
    """The one rack is full, of the gang that holds it."""
    _, shown = bayplan(cluster, "top", "-o", "json")
    (rack,) = json.loads(shown)["items"]
    assert (rack["gpus"], rack["holders"]) == ({"total": 16, "free": 0}, [HELD])
    assert HELD in bayplan(cluster, "top")[1]


@pytest.mark.usefixtures("serving")
def test_the_ledger_of_the_cluster_is_listed(cluster: Cluster) -> None:
    """The same command as for a ledger on disk."""
    status, out = bayplan(cluster, "reservations", "list", "-o", "json")
    assert (status, [item["spec"]["gang"] for item in json.loads(out)["items"]]) == (0, [HELD])
    assert bayplan(cluster, "reservations", "list", "-o", "name") == (0, f"{HELD}\n")
    assert bayplan(cluster, "why", WAITS, "-o", "name") == (1, f"{WAITS}\n")


@pytest.mark.usefixtures("serving")
def test_a_gang_that_runs_is_verified_where_it_is(cluster: Cluster) -> None:
    """Its two pods by their bindings, beside the reservation; the model knows its sixteen GPUs."""
    status, shown = bayplan(cluster, "verify", HELD, "-o", "json")
    (gang,) = json.loads(shown)["gangs"]
    assert (status, gang["asPlanned"], gang["measured"]) == (0, True, None)
    assert sum(gang["model"]["gpusByNVLinkDomain"]) == 16


@pytest.mark.usefixtures("serving")
def test_no_room_is_made_by_a_gang_that_has_not_agreed_to_be_moved(cluster: Cluster) -> None:
    """Neither for the gang that waits nor for a free rack; the answer names who keeps the rack."""
    status, shown = bayplan(cluster, "defrag", "--for", WAITS, "-o", "json")
    answer = json.loads(shown)
    assert (status, answer["reason"]) == (1, "TooFewGpus"), answer
    status, shown = bayplan(cluster, "defrag", "--free", "1", "-o", "json")
    (kept,) = json.loads(shown)["kept"]
    assert status == 1
    assert kept["why"].startswith(f"{HELD} has not agreed")


@pytest.mark.usefixtures("serving")
def test_nodes_without_gpu_feature_discovery_are_told(cluster: Cluster) -> None:
    """The stage's nodes offer GPUs and carry no product."""
    status, shown = bayplan(cluster, "nodes", "check", "-o", "json")
    assert status == 1
    assert {finding["reason"] for finding in json.loads(shown)["findings"]} == {"FeatureDiscoveryAbsent"}


@pytest.mark.usefixtures("serving")
@pytest.mark.parametrize("system", ["kai", "kueue"])
def test_objects_of_other_schedulers_are_printed_for_the_running_cluster(
    cluster: Cluster, system: str
) -> None:
    """Without files; a Topology comes first, of the racks that its nodes name."""
    status, shown = bayplan(cluster, "generate", system)
    topology = next(yaml.safe_load_all(shown))
    levels = [level["nodeLabel"] for level in topology["spec"]["levels"]]
    assert (status, topology["kind"], levels[0]) == (0, "Topology", RACK), shown
    assert shown.startswith("# 2 nodes, labels whose names end like rack or zone\n")


@pytest.mark.usefixtures("serving")
def test_kubectl_finds_bayplan_as_a_plugin(cluster: Cluster) -> None:
    """By the entry point that the wheel installs, on the PATH."""
    paths = {"PATH": f"{Path(BAYPLAN).parent}:/usr/bin:/bin", "KUBECONFIG": str(cluster.kubectl.kubeconfig)}
    environment = {**os.environ, **paths}
    command = [cluster.kubectl.program, "bayplan", "queue", "-o", "name"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, f"{WAITS}\n"), done.stderr


@pytest.mark.usefixtures("serving")
def test_kubectl_completes_the_plugin(cluster: Cluster) -> None:
    """By the program that kubectl asks, which the wheel installs beside it."""
    environment = {**os.environ, "PATH": f"{Path(BAYPLAN).parent}:/usr/bin:/bin"}
    command = [cluster.kubectl.program, "__complete", "bayplan", "reservations", "list", "-o", "w"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "wide\n:4\n"), done.stderr
