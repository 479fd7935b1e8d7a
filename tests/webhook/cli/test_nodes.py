"""`bayplan nodes check`: findings, labels and drop-ins, from files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from webhook.cli.main import main

FOLDER = "docs/node-side"
CHECK = ["nodes", "check", "-c", f"{FOLDER}/cluster.yaml"]


def test_findings_and_drift_as_json(capsys):
    """For a program that opens tickets."""
    assert main([*CHECK, "-o", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert {"CliqueWithoutLevel", "GpuCountDiffers"} <= {finding["reason"] for finding in answer["findings"]}
    assert answer["kubelet"][0]["setting"] == "topologyManagerPolicy"


def test_labels_are_commands_of_kubectl(capsys):
    """Only those whose value is known; a matrix adds its own."""
    assert main([*CHECK, "--print", "labels", "--topology-matrix", f"gpu-11={FOLDER}/topo.txt"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "kubectl label node gpu-12 --overwrite example.com/rack=r1" in lines
    assert "kubectl label node gpu-11 --overwrite bayplan.dev/gpus-per-numa-node=2" in lines
    assert not any("gpu-13" in line for line in lines)


@pytest.mark.parametrize("as_configz", [False, True], ids=["config file", "configz"])
def test_a_drop_in_is_a_kubelet_configuration(tmp_path: Path, capsys, as_configz: bool):
    """From the kubelet's file, or from what configz answers."""
    config = yaml.safe_load(Path(f"{FOLDER}/kubelet.yaml").read_text())
    file = tmp_path / "config"
    file.write_text(json.dumps({"kubeletconfig": config} if as_configz else config))
    assert main([*CHECK, "--kubelet-config", f"gpu-11={file}", "--print", "kubelet"]) == 1
    drop_in = yaml.safe_load(capsys.readouterr().out)
    assert (drop_in["kind"], drop_in["cpuManagerPolicy"]) == ("KubeletConfiguration", "static")


def test_nothing_to_mend_is_exit_status_0(capsys):
    """The cluster of another page has no GPU that is mislabelled."""
    assert main(["nodes", "check", "-c", "docs/verify/cluster.yaml"]) == 0
    assert "nothing to fix" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kubelet-config", f"gpu-99={FOLDER}/kubelet.yaml"], "no node 'gpu-99'"),
        (["--kubelet-config", f"gpu-11={FOLDER}/topo.txt"], "topo.txt"),
        (["--topology-matrix", f"gpu-11={FOLDER}/kubelet.yaml"], "no matrix"),
    ],
    ids=["unknown node", "no configuration", "no matrix"],
)
def test_a_file_that_is_something_else_is_refused(capsys, words: list[str], message: str):
    """Exit status 2, with the file."""
    assert main([*CHECK, *words]) == 2
    assert message in capsys.readouterr().err


def test_a_cut_is_a_configuration_of_mig_manager(capsys):
    """Nine slices of the pods that wait, on the first idle node, with the label that chooses it."""
    words = ["nodes", "mig", "-c", "docs/verify/cluster.yaml", "-f", f"{FOLDER}/inference.yaml"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "# kubectl label node r2a --overwrite nvidia.com/mig.config=bayplan-1" in out
    config = yaml.safe_load(out)
    (cut, whole) = config["mig-configs"]["bayplan-1"]
    assert (cut["mig-devices"], whole["mig-enabled"]) == ({"1g.10gb": 7}, False)


def test_taints_of_slices_keep_no_pod_away_that_gets_their_toleration(capsys, tmp_path):
    """The plugin ExtendedResourceToleration, which GKE runs, adds it to pods that request the slices."""
    labels = "{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, cloud.google.com/gke-nodepool: h100}"
    taint = "{key: nvidia.com/mig-1g.10gb, effect: NoSchedule}"
    node = f"""
apiVersion: v1
kind: Node
metadata: {{name: gke-1, labels: {labels}}}
spec: {{taints: [{taint}]}}
status: {{allocatable: {{nvidia.com/gpu: "2", pods: "110", cpu: "64"}}}}
"""
    words = ["nodes", "mig", "-c", str(tmp_path), "-f", f"{FOLDER}/inference.yaml"]
    (tmp_path / "cluster.yaml").write_text(node)
    assert main(words) == 0
    (tmp_path / "cluster.yaml").write_text(node.replace("cloud.google.com/gke-nodepool", "pool"))
    assert main(words) == 1
    assert "no idle node meets the node selector" in capsys.readouterr().err


def test_slices_that_no_idle_node_has_are_told(capsys):
    """Exit status 1; the nodes of that page are GB200s with another profile of that size."""
    words = ["nodes", "mig", "-c", f"{FOLDER}/cluster.yaml", "-f", f"{FOLDER}/inference.yaml"]
    assert main(words) == 1
    assert (
        "research/Deployment/chat: no idle node can be cut for 9 pods of 1 × 1g.10gb"
        in capsys.readouterr().err
    )


def test_another_object_is_no_kubelets_configuration(capsys, tmp_path):
    """A Job is told to be one; nothing is advised for it."""
    job = tmp_path / "job.yaml"
    job.write_text("apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\n")
    pair = f"gpu-11={job}"
    assert main(["nodes", "check", "-c", "docs/node-side/cluster.yaml", "--kubelet-config", pair]) == 2
    assert "is of kind Job, which is neither a KubeletConfiguration nor" in capsys.readouterr().err
