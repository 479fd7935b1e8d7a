"""`bayplan verify`: a placed gang's pods, the job that measures its place, and what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from planner.manifests.nccl_job import nccl_job
from webhook.cli.main import main
from webhook.workloads import read

CLUSTER = "docs/verify/cluster.yaml"
MEASURED = Path("docs/verify/all-reduce.txt")
TRAIN = ["verify", "research/Job/train", "-c", CLUSTER]


def test_the_model_and_the_measurement_are_told_apart(capsys):
    """Fields of their own, and what the comparison says."""
    assert main([*TRAIN, "--measured", str(MEASURED), "-o", "json"]) == 0
    (gang,) = json.loads(capsys.readouterr().out)["gangs"]
    assert gang["asPlanned"] is True
    assert gang["measured"]["busBandwidthGBps"] == 279.91
    assert gang["model"]["bytes"] == gang["measured"]["bytes"]
    assert gang["comparison"]["suffices"] is True


def test_a_slow_fabric_is_exit_status_1(tmp_path: Path, capsys):
    """Half of what the model expects."""
    slow = tmp_path / "slow.txt"
    slow.write_text(MEASURED.read_text().replace(" 279.91 ", " 139.91 "))
    assert main([*TRAIN, "--measured", str(slow)]) == 1
    assert "less than it should: 48 %" in capsys.readouterr().out
    assert main([*TRAIN, "--measured", str(slow), "--at-least", "0.4"]) == 0


def test_a_fabric_that_corrupts_data_is_exit_status_1(tmp_path: Path, capsys):
    """However fast it is."""
    wrong = tmp_path / "wrong.txt"
    wrong.write_text(MEASURED.read_text().replace(" 279.91      0", " 279.91      9"))
    assert main([*TRAIN, "--measured", str(wrong)]) == 1
    assert "corrupts data: 9 values" in capsys.readouterr().out


def test_a_measurement_of_another_number_of_gpus_is_refused(tmp_path: Path, capsys):
    """It is of another place."""
    other = tmp_path / "other.txt"
    other.write_text("\n".join(line for line in MEASURED.read_text().splitlines() if "Rank 15" not in line))
    assert main([*TRAIN, "--measured", str(other)]) == 2
    assert "is of 15 GPUs, and research/Job/train has 16" in capsys.readouterr().err


def test_a_measurement_is_compared_with_a_single_replica(tmp_path: Path, capsys):
    """The workload has two: without the name of one of them, nothing is compared."""
    documents = list(yaml.safe_load_all(Path(CLUSTER).read_text()))
    reservations = [entry for entry in documents if entry and entry["kind"] == "Reservation"]
    assert [entry["spec"]["gang"] for entry in reservations] == ["research/Job/train"]
    for number in range(2):
        replica = json.loads(json.dumps(reservations[0]))
        replica["metadata"]["name"] += f"-{number}"
        replica["spec"]["gang"] += f"/{number}"
        documents.append(replica)
    documents.remove(reservations[0])
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump_all(documents))
    command = ["verify", "research/Job/train", "-c", str(cluster), "--measured", "-"]
    assert main(command) == 2
    assert "has 2 replicas" in capsys.readouterr().err


def test_the_printed_job_is_a_workload_that_bayplan_leaves_alone(capsys):
    """An MPIJob over the gang's nodes, each with a worker."""
    assert main([*TRAIN, "--job"]) == 0
    job = yaml.safe_load(capsys.readouterr().out)
    assert job["kind"] == "MPIJob"
    assert read(job).skip
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    assert worker["replicas"] == 2
    (term,) = worker["template"]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["r1a", "r1b"]


def test_on_a_single_node_the_test_is_a_job():
    """Without MPI; all GPUs in one process."""
    job = nccl_job("nccl-x", "team", {"a": 4}, {"rdma/ib": 0.5})
    assert (job["kind"], read(job).skip) == ("Job", True)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"][-2:] == ["-g", "4"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "4", "rdma/ib": "2"}


@pytest.mark.parametrize("words", [["team/Job/none"], ["nonsense"]])
def test_who_holds_nothing_is_told(capsys, words: list[str]):
    """With the command that says why."""
    assert main(["verify", *words, "-c", CLUSTER]) == 2
    assert "bayplan why" in capsys.readouterr().err
