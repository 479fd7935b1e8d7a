"""`bayplan report` on a folder of 200 mixed manifests, as CI runs it."""

from __future__ import annotations

import copy
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.webhook.workloads.objects import EVERY, GROVE, annotated
from webhook.cli.common.inputs import shipped
from webhook.cli.main import main
from webhook.report.formats import FORMATS
from webhook.report.model import MUTATION, Report, Result

CLUSTER = str(shipped("manifests") / "examples" / "clusters" / "superpod-32.yaml")
COUNT = 200
TOPOLOGY = {"kai.scheduler/topology": "superpods"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All kinds in turn, every eighth with a topology that does not exist, every ninth asks for nothing."""
    directory = tmp_path_factory.mktemp("manifests")
    for number in range(COUNT):
        obj = copy.deepcopy(EVERY[number % len(EVERY)])
        if number % 8 == 0:
            obj = annotated(obj, TOPOLOGY)
        if number % 9 == 0:
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "team"}, "data": {}}
        obj["metadata"]["name"] = f"demo-{number}"
        (directory / f"{number:03}.yaml").write_text(yaml.safe_dump(obj, sort_keys=False))
    return directory


def report(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> tuple[int, str]:
    """The exit status and what stands on standard output."""
    capsys.readouterr()
    status = main(["report", "-c", CLUSTER, "-f", str(folder), *options])
    return status, capsys.readouterr().out


def test_two_hundred_manifests_are_reported_whole(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every object is there, every failure has a line, and the policies' counts add up."""
    status, text = report(capsys, folder, "-o", "json")
    document = json.loads(text)
    assert status == 1
    reported = {row["object"].rsplit("/", 1)[1] for row in document["results"]}
    # Grove's cliques are no pod templates, and what asks for nothing is no policy's affair.
    looked_at = {n for n in range(COUNT) if n % 9 and EVERY[n % len(EVERY)] is not GROVE}
    assert {f"demo-{number}" for number in looked_at} <= reported
    failures = [row for row in document["results"] if row["result"] == "fail"]
    assert all(row["line"] and row["file"] for row in failures)
    wrong = {row["object"] for row in failures if row["policy"] == "multi-topology"}
    assert len(wrong) >= COUNT // 10
    totals = {
        outcome: sum(counts[outcome] for counts in document["policies"].values())
        for outcome in document["summary"]
    }
    assert totals == document["summary"]


@pytest.fixture(scope="module")
def few(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first twenty of them, to look at each format."""
    directory = tmp_path_factory.mktemp("few")
    for path in sorted(folder.iterdir())[:20]:
        (directory / path.name).write_text(path.read_text())
    return directory


@pytest.fixture(scope="module")
def with_a_broken_file(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The twenty, and a file that cannot be read."""
    directory = tmp_path_factory.mktemp("broken")
    for path in few.iterdir():
        (directory / path.name).write_text(path.read_text())
    (directory / "broken.yaml").write_text("kind: [\n")
    return directory


@pytest.mark.usefixtures("each_decided_once")
@pytest.mark.parametrize("name", ["table", "yaml", "junit", "sarif", "markdown", "html"])
def test_each_format_is_whole(name: str, few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It parses, names the policy that refuses, and the status says that something fails."""
    status, text = report(capsys, few, "-o", name)
    assert status == 1
    assert "multi-topology" in text
    readers: dict[str, Any] = {"yaml": yaml.safe_load, "junit": ElementTree.fromstring, "sarif": json.loads}
    assert readers.get(name, str.strip)(text) is not None


def test_the_exit_status_tells_warnings_from_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 where all is well, N of --warn-exit-code where there are only warnings, 2 for bad input."""
    quiet, loud, bad = tmp_path / "quiet", tmp_path / "loud", tmp_path / "bad"
    for path in (quiet, loud, bad):
        path.mkdir()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}
    (quiet / "a.yaml").write_text(yaml.safe_dump(pod))
    shares = {"limits": {"nvidia.com/gpu.shared": 2, "cpu": 1, "memory": "1Gi"}}
    spec = {"containers": [{"name": "a", "image": "a", "resources": shares}]}
    (loud / "a.yaml").write_text(yaml.safe_dump({**pod, "spec": spec}))
    (bad / "a.yaml").write_text("kind: [")
    assert main(["report", "-f", str(quiet), "--warn-exit-code", "3"]) == 0
    assert main(["report", "-f", str(loud)]) == 0
    assert main(["report", "-f", str(loud), "--warn-exit-code", "3"]) == 3
    assert main(["report", "-f", str(bad)]) == 2
    assert "a.yaml" in capsys.readouterr().out


@pytest.mark.usefixtures("each_decided_once")
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_cannot_be_read_is_a_finding_of_it_and_the_rest_is_reported(
    name: str, with_a_broken_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In every format, with the line, and exit status 2."""
    status, text = report(capsys, with_a_broken_file, "-o", name)
    assert status == 2
    assert "no YAML" in text
    assert "broken.yaml" in text
    assert "multi-topology" in text, "the others are reported"


def test_replicas_of_which_the_same_is_to_say_are_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One finding for all gangs of an object, and how many they are."""
    wrong = annotated(next(manifest for manifest in EVERY if manifest["kind"] == "LeaderWorkerSet"), TOPOLOGY)
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(wrong))
    _, text = report(capsys, tmp_path, "-o", "json")
    (plan,) = [row for row in json.loads(text)["results"] if row["policy"] == "plan"]
    assert plan["message"].startswith("All 2 replicas, each: ")


COUNT_IN_CLUSTER = 10_000
SPACES = 50


def of_a_cluster() -> Report:
    """What `report --kubeconfig` keeps of ten thousand Jobs in fifty namespaces: of all what would change, of
    every seventh why it would be refused."""
    results, fates = [], []
    for number in range(COUNT_IN_CLUSTER):
        space, refused = f"team-{number % SPACES}", number % 7 == 0
        job = Result(f"{space}/Job/train-{number}", "pass", "policy", "guaranteed-qos", MUTATION, "cpu")
        results.append(job)
        if refused:
            results.append(replace(job, result="fail", source="plan", policy="plan", rule="NoNode"))
        fates.append((space, "refused" if refused else "changed"))
    return Report(tuple(results), fates=tuple(fates))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["json", "junit", "html", "sarif", "markdown"])
def test_of_ten_thousand_objects_none_is_lost(name: str) -> None:
    """All are in the formats for programs, and all refused ones in that for code scanning; in a pull request
    the first stand with the number of the others. The counts are of all."""
    out = io.StringIO()
    FORMATS[name](of_a_cluster(), out)
    text = out.getvalue()
    every = {f"train-{number}" for number in range(COUNT_IN_CLUSTER)}
    refused = {f"train-{number}" for number in range(0, COUNT_IN_CLUSTER, 7)}
    reported = set(re.findall(r"train-\d+", text))
    assert reported == every if name in ("json", "junit", "html") else reported <= every
    if name == "sarif":
        assert reported == refused
    if name == "json":
        document = json.loads(text)
        assert document["objects"]["refused"] == len(refused)
        assert len(document["namespaces"]) == SPACES
    if name in ("markdown", "html"):
        assert f"of {COUNT_IN_CLUSTER} objects {len(refused)} refused" in text.lower()
    if name == "markdown":
        assert len(text) < 65_536, "a comment on a pull request has room for no more"
        assert "more" in text
