"""`bayplan plan` on what a place is worth."""

import json
from pathlib import Path

import pytest
import yaml

from webhook.cli.main import main

CLUSTERS, JOBS = "manifests/examples/clusters", "manifests/examples"


def plan(cluster, job, capsys, *words):
    main(("plan", "-c", f"{CLUSTERS}/{cluster}.yaml", "-f", f"{JOBS}/{job}.yaml", *words))
    return capsys.readouterr().out


def test_an_admitted_gang_shows_its_all_reduce_beside_a_blind_one(capsys):
    """Milliseconds, bandwidth, what it would be without a plan, the links and the model."""
    out = plan("nvl72-8racks", "job-nvl72-72-gpus", capsys)
    assert "2.68 ms, 735 GB/s, 18 nodes  4.97 ms, 397 GB/s, 18 nodes (1.85×)" in out
    assert "NVLink 5 900 GB/s" in out
    assert "model: hierarchical ring all-reduce" in out
    assert "kube-scheduler's least allocated" in out


def test_the_json_has_it_besides_the_contracts_keys(capsys):
    """The same figures, with the GPUs in each NVLink domain."""
    (gang,) = json.loads(plan("nvl72-8racks", "job-nvl72-72-gpus", capsys, "-o", "json"))["gangs"]
    assert gang["allReduce"]["placement"]["milliseconds"] == pytest.approx(2.683, abs=0.001)
    assert gang["allReduce"]["placement"]["gpusByNVLinkDomain"] == [72]
    assert len(gang["allReduce"]["topologyBlind"]["gpusByNVLinkDomain"]) > 1


@pytest.mark.parametrize("job", ["job-without-resources", "job-76-gpus-one-rack"])
def test_one_pod_and_a_gang_without_a_place_show_nothing(job, capsys):
    """There is no all-reduce to speak of."""
    cluster = "superpod-32" if "without" in job else "nvl72-8racks"
    assert "all-reduce" not in plan(cluster, job, capsys)


def test_explain_draws_the_search_and_names_the_nearest_requests(capsys):
    """Every level with what fits there now and when empty, the nodes by cause, and what would work."""
    out = plan("superpod-32", "jobset-64-gpus", capsys, "--explain")
    assert "  └ cloud.provider.com/topology-block " in out
    (rack,) = (line for line in out.splitlines() if "topology-rack (required, placed here)" in line)
    assert rack.split()[-8:] == ["8", "of", "8", "su-1/rack-3", "8", "of", "8", "su-1/rack-1"]
    assert "32 nodes: 16 can take a pod now, left out\n    14 insufficient nvidia.com/gpu\n" in out
    assert "    1 taint example.com/burn-in=true:NoSchedule (when empty 1)" in out
    assert "nearest request ever admitted:" in out


def test_the_json_tells_the_search(capsys):
    """Levels, nodes by cause that add up, the nearest requests now and ever."""
    (gang,) = json.loads(plan("nvl72-8racks", "job-76-gpus-one-rack", capsys, "-o", "json"))["gangs"]
    search = gang["search"]
    assert search["nearest"] == {
        "now": ["18 pods (spec.parallelism: 18)", "required at topology.kubernetes.io/zone"],
        "ever": ["18 pods (spec.parallelism: 18)", "required at topology.kubernetes.io/zone"],
    }
    left_out = {"insufficient rdma/ib": 9}
    assert search["nodes"] == {
        "total": 119, "usable": 110, "excluded": left_out, "excludedWhenEmpty": left_out,
    }  # fmt: skip
    assert [level["now"]["pods"] for level in search["levels"]] == [19, 19, 18, 18, 1]


def test_a_contradiction_has_no_search_to_tell(capsys):
    """The message says what would be valid; there is nothing to count."""
    (gang,) = json.loads(plan("superpod-32", "job-unknown-level", capsys, "-o", "json"))["gangs"]
    assert gang["decision"] == "rejected"
    assert "search" not in gang
    assert "nearest" not in plan("superpod-32", "job-unknown-level", capsys, "--explain")


def test_an_elastic_gang_is_compared_with_the_pods_that_it_got(capsys, tmp_path):
    """Of 2 to 6 pods six have a place; the blind scheduler is given six as well."""
    (job,) = yaml.safe_load_all(Path(f"{JOBS}/job-six-nodes-one-rack.yaml").read_text())
    job["metadata"]["annotations"]["bayplan.dev/gang-min"] = "2"
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    main(("plan", "-c", f"{CLUSTERS}/superpod-32.yaml", "-f", str(file), "-o", "json"))
    (gang,) = json.loads(capsys.readouterr().out)["gangs"]
    assert gang["allReduce"]["topologyBlind"]["podsPlaced"] == 6
    assert [level["now"]["wanted"] for level in gang["search"]["levels"]] == [6] * 4


def test_a_report_tells_the_same_as_the_plan(capsys):
    """Though by then policies have pinned the pods: the blind placement is that of the gang as it came."""
    job = f"{JOBS}/job-nvl72-72-gpus.yaml"
    main(("report", "-c", f"{CLUSTERS}/nvl72-8racks.yaml", "-f", job, "-o", "json"))
    (result,) = (row for row in json.loads(capsys.readouterr().out)["results"] if row["source"] == "plan")
    sentence = "All-reduce of 1 GB: 2.68 ms, topology-blind 4.97 ms (1.85×), by the model: hierarchical ring"
    assert sentence in result["message"]
    assert result["properties"]["allReduceMs"] == "2.683"
    assert "hierarchical ring" in result["properties"]["allReduceModel"]


def test_an_elastic_gang_whose_numbers_contradict_is_not_searched(tmp_path, capsys):
    """A minimum above the maximum: no levels and no nearest request, only the words of the refusal."""
    pod = {"containers": [{"name": "pytorch", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}
    worker = {"replicas": 8, "template": {"spec": pod}}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "elastic", "namespace": "research"},
        "spec": {
            "elasticPolicy": {"minReplicas": 6, "maxReplicas": 4},
            "pytorchReplicaSpecs": {"Worker": worker},
        },
    }
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(job))
    assert main(("plan", "-c", f"{CLUSTERS}/superpod-32.yaml", "-f", str(path), "--explain")) == 1
    out = capsys.readouterr().out
    assert "use a minimum of 4 or less" in out
    assert "nearest request" not in out
