"""`bayplan plan` on what a place is worth."""

import json

import pytest

from webhook.cli import main

CLUSTERS, JOBS = "manifests/examples/clusters", "manifests/examples"


def plan(cluster, job, capsys, *more):
    main(("plan", "-c", f"{CLUSTERS}/{cluster}.yaml", "-f", f"{JOBS}/{job}.yaml", *more))
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
