"""What contradicts itself is refused by `bayplan plan` with the field, or a reason, and the valid values."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.cli.main import main

Json = dict[str, Any]

MINIMUM = "a minimum of 4 or less (metadata.annotations[bayplan.dev/gang-min])"
TOPOLOGY: Json = {
    "apiVersion": "kai.scheduler/v1alpha1",
    "kind": "Topology",
    "metadata": {"name": "fabric"},
    "spec": {
        "levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    },
}
NODE: Json = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"block": "b1", "rack": "r1", "kubernetes.io/hostname": "n1"}},
    "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"}},
}
CONTAINER: Json = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "job", "namespace": "team", "annotations": {}},
    "spec": {
        "completionMode": "Indexed",
        "parallelism": 4,
        "completions": 4,
        "template": {
            "metadata": {"annotations": {}},
            "spec": {"restartPolicy": "Never", "containers": [CONTAINER]},
        },
    },
}
JOBSET: Json = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "set", "namespace": "team", "annotations": {}},
    "spec": {"replicatedJobs": [{"name": "worker", "template": {"spec": JOB["spec"]}}]},
}
LWS: Json = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "serve", "namespace": "team"},
    "spec": {
        "replicas": 2,
        "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": {"containers": [CONTAINER]}}},
    },
}
TRAINING: Json = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "train", "namespace": "team"},
    "spec": {
        "pytorchReplicaSpecs": {"Worker": {"replicas": 4, "template": {"spec": {"containers": [CONTAINER]}}}}
    },
}
TEMPLATE = ("spec", "template", "metadata", "annotations")
INNER = ("spec", "replicatedJobs", 0, "template", "spec", "template", "metadata", "annotations")
RESOURCES = ("spec", "template", "spec", "containers", 0, "resources")
REQUIRED, PREFERRED = (
    f"kai.scheduler/topology-{strength}-placement" for strength in ("required", "preferred")
)
SEGMENT = "kai.scheduler/segment-size"
OWN = ("metadata", "annotations")
SLICE = "kueue.x-k8s.io/podset-slice-size"
SLICE_LEVEL = "kueue.x-k8s.io/podset-slice-required-topology"


def changed(obj: Json, *changes: tuple[tuple[str | int, ...], Any]) -> Json:
    """A copy with these values at these paths; a mapping is added to what is there."""
    copied = deepcopy(obj)
    for path, value in changes:
        parent: Any = copied
        for step in path[:-1]:
            parent = parent.setdefault(step, {}) if isinstance(parent, dict) else parent[step]
        parent[path[-1]] = {**parent.get(path[-1], {}), **value} if isinstance(value, dict) else value
    return copied


def answered(tmp_path: Path, obj: Json) -> int:
    """The exit status of a plan of this object."""
    cluster, manifest = tmp_path / "cluster.yaml", tmp_path / "manifest.yaml"
    cluster.write_text(yaml.safe_dump_all([TOPOLOGY, NODE]))
    manifest.write_text(yaml.safe_dump(obj))
    return main(("plan", "-c", str(cluster), "-f", str(manifest)))


@pytest.mark.parametrize(
    ("obj", "reason", "message"),
    [
        (
            changed(
                JOBSET,
                (OWN, {REQUIRED: "rack"}),
                (INNER, {"kueue.x-k8s.io/podset-required-topology": "block"}),
            ),
            "PodSetLevelTooCoarse",
            "worker: its required level block is coarser than the gang's, rack",
        ),
        (
            changed(JOB, (OWN, {REQUIRED: "rack"}), (TEMPLATE, {SLICE: "2", SLICE_LEVEL: "block"})),
            "SliceLevelTooCoarse",
            "use rack or a finer one",
        ),
        (
            changed(JOB, (TEMPLATE, {SLICE: "3", SLICE_LEVEL: "rack"})),
            "SlicesDoNotDivide",
            "3 pods or 6 pods",
        ),
        (changed(JOB, (OWN, {"bayplan.dev/gang-min": "9"})), "MinimumAboveMaximum", MINIMUM),
        (
            changed(JOB, (OWN, {REQUIRED: "shelf"})),
            "UnknownLevel",
            f"metadata.annotations[{REQUIRED}] is 'shelf'",
        ),
        (changed(JOB, (OWN, {PREFERRED: "shelf"})), "UnknownLevel", "block, rack, kubernetes.io/hostname"),
        (
            changed(JOB, (TEMPLATE, {SLICE: "2", SLICE_LEVEL: "shelf"})),
            "UnknownLevel",
            f"spec.template.metadata.annotations[{SLICE_LEVEL}] is 'shelf'",
        ),
        (changed(JOB, (OWN, {"kai.scheduler/topology": "no"})), "UnknownTopology", "it has fabric"),
        (
            changed(JOB, (("spec", "parallelism"), 2**31 - 1), (("spec", "completions"), 2**31 - 1)),
            "TooManyPods",
            "100000 are the most (spec.parallelism).",
        ),
        (changed(JOB, (TEMPLATE, {"gpu-fraction": "0.5"})), "PartAndWholeGpu", "without the annotation"),
    ],
)
def test_a_contradiction_is_refused_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], obj: Json, reason: str, message: str
) -> None:
    """A child broader than its parent, slices that do not divide, a minimum above the maximum and so on."""
    assert answered(tmp_path, obj) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert f": {reason} " in out
    assert message in out


@pytest.mark.parametrize(
    ("obj", "field", "message"),
    [
        (
            changed(JOB, ((*RESOURCES, "limits"), {"nvidia.com/gpu": "-1"})),
            "limits.nvidia.com/gpu",
            "negative",
        ),
        (changed(JOB, ((*RESOURCES, "limits"), {"cpu": "1e30"})), "limits.cpu", "more than the API server"),
        (
            changed(JOB, ((*RESOURCES, "limits"), {"cpu": "lots"})),
            "limits.cpu",
            "write it as 4, 500m or 16Gi",
        ),
        (changed(JOB, ((*RESOURCES, "limits"), {"nvidia.com/gpu": "0.5"})), "limits.nvidia.com/gpu", "whole"),
        (
            changed(JOB, (RESOURCES, {"requests": {"cpu": "4"}, "limits": {"cpu": "2"}})),
            "resources.requests.cpu",
            "4 is more than the limit of 2; use 2 or less",
        ),
        (changed(JOB, (("spec", "parallelism"), -1)), "spec.parallelism", "use 0 to"),
        (changed(JOB, (("spec", "parallelism"), "4")), "spec.parallelism", "expected a whole number"),
        (changed(JOB, (TEMPLATE, {SLICE: "0", SLICE_LEVEL: "rack"})), SLICE, "use 1 to"),
        (changed(JOB, (TEMPLATE, {SLICE: "-2", SLICE_LEVEL: "rack"})), SLICE, "a whole number such as 4"),
        (changed(JOB, (TEMPLATE, {SLICE: "2"})), SLICE, "nothing names their level"),
        (changed(JOB, (TEMPLATE, {SLICE_LEVEL: "rack"})), SLICE_LEVEL, "nothing says how many pods"),
        (changed(JOB, (OWN, {"bayplan.dev/gang-min": "0"})), "bayplan.dev/gang-min", "use 1 to"),
        (
            changed(JOB, (OWN, {"kai.scheduler/batch-min-member": "9"})),
            "kai.scheduler/batch-min-member",
            "use at most 4",
        ),
        (changed(JOB, (OWN, {"bayplan.dev/reserve": "all"})), "bayplan.dev/reserve", "domain, nodes, none"),
        (changed(JOB, (OWN, {REQUIRED: 5})), REQUIRED, "expected a string"),
        (changed(TRAINING, (("spec", "elasticPolicy"), {"minReplicas": 6})), "minReplicas", "use at most 4"),
        (
            changed(LWS, (("spec", "leaderWorkerTemplate", "size"), 0)),
            "leaderWorkerTemplate.size",
            "use 1 to",
        ),
        (changed(JOB, (TEMPLATE, {"gpu-fraction": "1.5"})), "gpu-fraction", "above 0 and below 1"),
    ],
)
def test_a_bad_value_is_named_by_its_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], obj: Json, field: str, message: str
) -> None:
    """One line on standard error: file, object, field, and what would be valid."""
    assert answered(tmp_path, obj) == 2
    line = capsys.readouterr().err
    name = f"team/{obj['kind']}/{obj['metadata']['name']}"
    assert line.startswith(f"bayplan: {tmp_path / 'manifest.yaml'}: {name}: ")
    assert field in line
    assert message in line


def test_a_preferred_level_without_effect_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At or above the required one, the gang's own or that of its pods' gang."""
    own = changed(JOB, (OWN, {REQUIRED: "rack", PREFERRED: "block"}))
    inner = changed(
        JOBSET, (OWN, {REQUIRED: "rack"}), (INNER, {"kueue.x-k8s.io/podset-preferred-topology": "block"})
    )
    for obj in (own, inner):
        assert answered(tmp_path, obj) == 0
        assert "the preferred level block has no effect" in " ".join(capsys.readouterr().out.split())
