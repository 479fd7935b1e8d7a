"""Nothing is skipped in silence: kinds whose pods are not read and namespaces in no file are told."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.calls import EXAMPLES
from webhook.cli.main import main
from webhook.report.formats import FORMATS

SUPERPOD = str(EXAMPLES / "clusters" / "superpod-32.yaml")
CONTAINER = {"name": "main", "image": "busybox"}
EIGHT_GPUS = {"limits": {"nvidia.com/gpu": 8}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "research"},
    "spec": {"containers": [CONTAINER]},
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def rows(tmp_path: Path, capsys: pytest.CaptureFixture[str], *objects: Any, policy: str) -> list[Any]:
    """What a report tells of objects in a file, of one policy."""
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all(objects))
    main(["report", "-c", SUPERPOD, "-f", str(tmp_path / "a.yaml"), "-o", "json"])
    return [row for row in json.loads(capsys.readouterr().out)["results"] if row["policy"] == policy]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "field"),
    [
        (
            "argoproj.io/v1alpha1", "Workflow",
            {"templates": [{"name": "steps"}, {"name": "a", "container": {"image": "busybox"}}]},
            "spec.templates[1].container",
        ),
        (
            "argoproj.io/v1alpha1", "CronWorkflow",
            {"workflowSpec": {"templates": [{"script": {"image": "python", "source": "print()"}}]}},
            "spec.workflowSpec.templates[0].script",
        ),
        (
            "serving.kserve.io/v1beta1", "InferenceService", {"predictor": {"containers": [CONTAINER]}},
            "spec.predictor.containers",
        ),
        (
            "tekton.dev/v1", "Task", {"steps": [{"name": "a", "image": "busybox", "script": "true"}]},
            "spec.steps",
        ),
        (
            "apps/v1", "DaemonSet", {"template": {"spec": {"containers": [CONTAINER]}}},
            "spec.template.spec.containers",
        ),
        (
            "serving.kserve.io/v1beta1", "InferenceService",
            {"predictor": {"model": {"modelFormat": {"name": "onnx"}, "resources": EIGHT_GPUS}}},
            "spec.predictor.model.resources",
        ),
        (
            "serving.kserve.io/v1alpha2", "LLMInferenceService",
            {"template": {"containers": [{"name": "main", "resources": EIGHT_GPUS}]}},
            "spec.template.containers[0].resources",
        ),
        (
            "nvidia.com/v1alpha1", "DynamoGraphDeployment",
            {"services": {"decode": {"replicas": 2, "resources": {"limits": {"gpu": "4"}}}}},
            "spec.services.decode.resources",
        ),
        (
            "trainer.kubeflow.org/v1alpha1", "TrainJob", {"runtimeRef": {"name": "torch"}}, "spec",
        ),
    ],
)  # fmt: skip
def test_a_kind_that_is_not_read_and_makes_pods_is_told_with_what_would_happen(
    api_version: str, kind: str, spec: Any, field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At the field that describes them."""
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    (row,) = rows(tmp_path, capsys, obj, policy="kind")
    assert (row["result"], row["object"], row["field"]) == ("warn", f"default/{kind}/x", field)
    assert row["line"] > 1
    assert "admitted unchanged" in row["message"]
    assert "handled by itself when it is created" in row["message"]
    assert "a workload of a supported kind that is made of it is planned" in row["message"]


def test_a_set_that_grove_plans_is_told_not_to_be_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise a set that is too large for the cluster seems to be right."""
    clique = {"name": "prefill", "spec": {"replicas": 500, "podSpec": {"containers": [CONTAINER]}}}
    obj = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "x"},
        "spec": {"template": {"cliques": [clique]}},
    }
    (row,) = rows(tmp_path, capsys, obj, policy="kind")
    assert (row["result"], row["field"]) == ("warn", "spec.template.cliques")
    assert "is planned by Grove" in row["message"]
    assert "not refused if it is too large for the cluster" in row["message"]


@pytest.mark.parametrize(
    ("api_version", "kind", "works"),
    [
        ("bacth/v1", "Job", "Job of batch/v1"),
        ("batch/v1", "job", "Job of batch/v1"),
        ("apps/v1", "Deployments", "Deployment of apps/v1"),
        ("kubeflow.org/v1", "MXJob", ""),
        ("batch.volcano.sh/v1alpha1", "Job", ""),
    ],
)
def test_a_misspelt_kind_is_told_the_right_one(
    api_version: str, kind: str, works: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API server knows no such kind either; a kind of another system is not taken for a mistake."""
    spec = {"template": {"spec": {"containers": [CONTAINER]}}}
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    (row,) = rows(tmp_path, capsys, obj, policy="kind")
    assert row["message"].partition("What would work: ")[2] == works


@pytest.mark.parametrize(
    "obj",
    [
        POD,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"containers": "[]"}},
        {"apiVersion": "a.b/v1", "kind": "Policy", "metadata": {"name": "c"}, "spec": {"containers": ["a"]}},
        {"apiVersion": "a.b/v1", "kind": "Policy", "metadata": {"name": "c"}, "spec": {"container": "a"}},
        {"apiVersion": "a.b/v1", "kind": "Policy", "metadata": {"name": "c"}, "spec": None},
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "p"},
            "spec": {"limits": {"nvidia.com/gpu": 64}},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c"},
            "spec": {"resources": {"requests": {"storage": "1Ti"}}},
        },
    ],
)
def test_what_is_read_and_what_makes_no_pods_is_not_told(
    obj: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A field of that name is no container."""
    assert rows(tmp_path, capsys, obj, policy="kind") == []


def test_a_namespace_that_is_in_no_file_is_told_beside_those_that_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, at the first object in it, with the mode in which its objects were judged."""
    second = {**POD, "metadata": {"name": "q", "namespace": "research"}}
    (row,) = rows(tmp_path, capsys, NAMESPACE, POD, second, policy="namespace")
    assert (row["result"], row["field"]) == ("warn", "metadata.namespace")
    assert (row["object"], row["apiVersion"]) == ("research/Namespace/research", "v1")
    assert "2 objects judged as in mode enforce" in row["message"]
    assert "the API server refuses" in row["message"]
    text = (tmp_path / "a.yaml").read_text().splitlines()
    assert text[row["line"] - 1].strip() == "namespace: research"


def test_where_no_file_holds_a_namespace_that_is_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not as a warning: `kubectl get nodes,pods` prints none."""
    (row,) = rows(tmp_path, capsys, POD, policy="namespace")
    assert row["result"] == "skip"
    main(["report", "-c", SUPERPOD, "-f", str(tmp_path / "a.yaml")])
    words = " ".join(capsys.readouterr().out.split())
    assert "judged without the labels of namespaces that are in no file: research" in words


@pytest.mark.parametrize(
    "objects",
    [
        (POD, {**NAMESPACE, "metadata": {"name": "research"}}),
        ({**POD, "metadata": {"name": "p"}},),
        (NAMESPACE,),
    ],
)
def test_known_namespaces_and_cluster_wide_objects_are_not_told(
    objects: tuple[Any, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API server makes `default` itself."""
    assert rows(tmp_path, capsys, *objects, policy="namespace") == []


def test_a_cluster_wide_object_stands_in_no_namespace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its kind is not one."""
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(NAMESPACE))
    main(["report", "-f", str(tmp_path / "a.yaml"), "-o", "json"])
    assert list(json.loads(capsys.readouterr().out)["namespaces"]) == [""]


OFFENDING = {
    "spec.nodeSelector[pool]": {"nodeSelector": {"pool": "none"}},
    "spec.containers[0].resources.limits[nvidia.com/gpu]": {},
}
MISSPELT = "metadata.annotations[kai.scheduler/topology-required-placment]"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("option", [(), ("--together",)])
def test_every_format_points_at_the_field_that_offends(
    form: str, option: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A selector that no node meets, an amount that none has, a key that is a slip away from one."""
    gpus = {"resources": {"limits": {"nvidia.com/gpu": "16"}}}
    few = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pods = [
        {
            **POD,
            "metadata": {"name": "s"},
            "spec": {"nodeSelector": {"pool": "none"}, "containers": [CONTAINER | few]},
        },
        {**POD, "metadata": {"name": "g"}, "spec": {"containers": [CONTAINER | gpus]}},
        {
            **POD,
            "metadata": {"name": "k", "annotations": {"kai.scheduler/topology-required-placment": "rack"}},
            "spec": {"containers": [CONTAINER | few]},
        },
    ]
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all(pods))
    main(["report", "-c", SUPERPOD, "-f", str(tmp_path / "a.yaml"), "-o", form, *option])
    text = html.unescape(capsys.readouterr().out)
    for field in (*OFFENDING, MISSPELT):
        assert field in text, field
