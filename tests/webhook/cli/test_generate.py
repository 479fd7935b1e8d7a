"""`bayplan generate`: its objects fit the schemas of KAI, Kueue and the DRA driver; Bayplan reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from planner.manifests.topologies.scheduler_objects import PARENT
from tests.policies.helpers import CLUSTERS
from webhook.cli.main import main
from webhook.files.reader import objects
from webhook.policy.engine.device_selectors import read_cluster

ROOT = Path(__file__).parents[3]
SCHEMAS = yaml.safe_load((ROOT / "tests/planner/manifests/topologies/scheduler_schemas.yaml").read_text())
KAI_TOPOLOGY = yaml.safe_load((ROOT / "tests/e2e/crds/topologies.kai.scheduler.yaml").read_text())
CLUSTER_FILES = sorted(CLUSTERS.glob("*.yaml"))

Json = dict[str, Any]


def generated(capsys: pytest.CaptureFixture[str], *words: str) -> list[Json]:
    """The objects that a command prints."""
    assert main(["generate", *words]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def schema_of(obj: Json) -> Json:
    """What the CRD of an object's kind says of its spec."""
    key = f"{obj['apiVersion']}/{obj['kind']}"
    if key == "kai.scheduler/v1alpha1/Topology":
        schema: Json = KAI_TOPOLOGY["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        return dict(schema["properties"]["spec"])
    return {**SCHEMAS[key], "definitions": SCHEMAS["definitions"]}


def faults(obj: Json) -> list[str]:
    """What the schema finds wrong."""
    validator = jsonschema.Draft7Validator(schema_of(obj))
    return [error.message for error in validator.iter_errors(obj["spec"])]


@pytest.mark.parametrize("file", CLUSTER_FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("system", ["kai", "kueue"])
def test_every_object_fits_its_schema(system: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For each example cluster whose nodes tell a level."""
    if main(["generate", system, "-c", str(file)]) == 1:
        assert "label zones and racks first" in capsys.readouterr().err
        return
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [fault for obj in documents for fault in faults(obj)] == []
    hosts = [obj["spec"]["levels"] for obj in documents if obj["kind"] == "Topology"]
    assert all(
        [row["nodeLabel"] for row in levels].index("kubernetes.io/hostname") == len(levels) - 1
        for levels in hosts
    )


def test_a_schema_refuses_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """So that the tests above can fail."""
    (domain,) = generated(capsys, "compute-domain", "pretrain", "-n", "research")
    assert faults(domain) == []
    del domain["spec"]["numNodes"]
    assert faults(domain) == ["'numNodes' is a required property"]


def test_kai_s_queues_have_the_gpus_that_were_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Below one parent; a queue without a number has no limit."""
    cluster = str(CLUSTERS / "superpod-32.yaml")
    objects = generated(capsys, "kai", "-c", cluster, "--queue", "research=64", "--queue", "serving")
    queues = {obj["metadata"]["name"]: obj["spec"] for obj in objects if obj["kind"] == "Queue"}
    assert "parentQueue" not in queues.pop(PARENT)
    assert {
        name: (spec["parentQueue"], spec["resources"]["gpu"]["quota"]) for name, spec in queues.items()
    } == {
        "research": (PARENT, 64),
        "serving": (PARENT, -1),
    }


def test_more_gpus_than_there_are_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """As a comment, with both numbers."""
    main(["generate", "kai", "-c", str(CLUSTERS / "superpod-32.yaml"), "--queue", "a=200", "--queue", "b=57"])
    assert "# 257 GPUs are promised, and the nodes have 256" in capsys.readouterr().out


def test_kueue_s_quota_is_what_the_nodes_give_and_its_objects_name_each_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """LocalQueue to ClusterQueue to ResourceFlavor to Topology, and to nodes by a label that they share."""
    cluster = str(CLUSTERS / "superpod-32.yaml")
    objects = generated(capsys, "kueue", "-c", cluster, "--queue", "ml", "-n", "research", "-n", "serving")
    by_kind: dict[str, list[Json]] = {}
    for obj in objects:
        by_kind.setdefault(obj["kind"], []).append(obj)
    (topology,), (flavor,), (queue,) = (
        by_kind[kind] for kind in ("Topology", "ResourceFlavor", "ClusterQueue")
    )
    assert flavor["spec"]["topologyName"] == topology["metadata"]["name"]
    (group,) = queue["spec"]["resourceGroups"]
    (quotas,) = group["flavors"]
    assert quotas["name"] == flavor["metadata"]["name"]
    assert [row["name"] for row in quotas["resources"]] == group["coveredResources"]
    assert {row["name"]: row["nominalQuota"] for row in quotas["resources"]}["nvidia.com/gpu"] == "256"
    local = [(obj["metadata"]["namespace"], obj["spec"]["clusterQueue"]) for obj in by_kind["LocalQueue"]]
    assert local == [("research", "ml"), ("serving", "ml")]


def test_a_kueue_that_serves_no_v1beta2_gets_its_objects_in_v1beta1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All of them; otherwise they are those of the default."""
    options = ("kueue", "-c", str(CLUSTERS / "superpod-32.yaml"))
    today, before = generated(capsys, *options), generated(capsys, *options, "--api-version", "v1beta1")
    assert {obj["apiVersion"] for obj in today} == {"kueue.x-k8s.io/v1beta2"}
    assert before == [obj | {"apiVersion": "kueue.x-k8s.io/v1beta1"} for obj in today]


@pytest.mark.parametrize("system", ["kai", "kueue"])
def test_bayplan_reads_what_it_wrote(system: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The topology with its levels, and the queues by name."""
    nodes = [row for row in objects([str(CLUSTERS / "superpod-32.yaml")]) if row.value["kind"] == "Node"]
    bare = tmp_path / "nodes.yaml"
    bare.write_text(yaml.safe_dump_all([row.value for row in nodes]))
    main(["generate", system, "-c", str(bare)])
    written = tmp_path / "written.yaml"
    written.write_text(capsys.readouterr().out)
    seen = read_cluster((row.file, row.value) for row in objects([str(bare), str(written)]))
    (topology,) = seen.topologies
    assert topology.levels[-1] == "kubernetes.io/hostname"
    queues = {name for names in seen.base.schedulers.queues.values() for name in names}
    assert queues >= ({"default-queue", PARENT} if system == "kai" else {"default/main"})


def test_nodes_without_a_label_of_their_own_are_to_be_labelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kueue wants a label for a flavor with a topology; the comment has the command."""
    racks = {f"a{number}": {"cloud.provider.com/topology-rack": f"r{number}"} for number in (1, 2)}
    others = {f"b{number}": {"topology.example.com/rack": f"s{number}"} for number in (1, 2)}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}},
        }
        for name, labels in {**racks, **others}.items()
    ]
    file = tmp_path / "nodes.yaml"
    file.write_text(yaml.safe_dump_all(nodes))
    main(["generate", "kueue", "-c", str(file)])
    assert "on all 2 nodes and on no other; kubectl label nodes NAME… " in (capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["kai", "--queue", "Big"], "'Big' is no name"),
        (["kai", "--queue", "a=x"], "'x' is no number of GPUs"),
        (["compute-domain", "A_b"], "'A_b' is no name"),
    ],
)
def test_what_is_no_name_or_number_is_told(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2."""
    with pytest.raises(SystemExit) as exit_:
        main(["generate", *words, "-c", str(CLUSTERS / "superpod-32.yaml")])
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ("generate", "kai"),
        ("generate", "kueue"),
        ("topology", "show"),
        ("top",),
        ("nodes", "check"),
        ("defrag", "--free=1"),
    ],
)
def test_a_cluster_in_files_and_one_that_runs_are_not_read_together(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two sources the second was ignored without a word."""
    assert main([*command, "-c", str(CLUSTER_FILES[0]), "--kubeconfig", "admin.conf"]) == 2
    assert "--kubeconfig reads the cluster itself: leave one out" in capsys.readouterr().err
