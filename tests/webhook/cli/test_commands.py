"""The command line to the letter of its contract: exit status, standard output, standard error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.calls import EXAMPLES
from webhook.cli.main import COMMANDS, main

SUPERPOD = str(EXAMPLES / "clusters" / "superpod-32.yaml")
JOB = str(EXAMPLES / "job-two-nodes-one-rack.yaml")
NEVER = str(EXAMPLES / "job-76-gpus-one-rack.yaml")
NVL72 = str(EXAMPLES / "clusters" / "nvl72-8racks.yaml")
Run = Any


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` shows how it is called."""
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"\n  bayplan {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "not_needed"),
    [
        (
            ("--help",),
            {"planner.cluster.snapshot", "webhook.policy", "yaml", "rich", "aiohttp", "kubernetes"},
        ),
        (("plan", "-c", SUPERPOD, "-f", JOB), {"networkx", "aiohttp", "kubernetes", "webhook.server.http"}),
    ],
    ids=["help", "plan"],
)
def test_a_command_imports_no_library_that_it_does_not_need(
    words: tuple[str, ...], not_needed: set[str]
) -> None:
    """They cost more time than the command itself."""
    code = (
        "import contextlib, io, sys\n"
        "from webhook.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    main({list(words)!r})\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert set(done.stdout.split()) & not_needed == set()


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, and the commands that there are."""
    with pytest.raises(SystemExit) as stopped:
        main(["stow"])
    assert stopped.value.code == 2
    assert "plan" in capsys.readouterr().err


def test_plan_prints_the_contracts_json(run: Run) -> None:
    """Every field of the contract is there, and an admitted gang exits with 0."""
    status, out, _ = run("plan", "-c", SUPERPOD, "-f", JOB, "-o", "json")
    (gang,) = json.loads(out)["gangs"]
    assert status == 0
    assert set(gang) >= {
        "name", "decision", "topology", "level", "domain",
        "reserves", "assignments", "reason", "message", "warnings",
    }  # fmt: skip
    assert gang["decision"] == "admitted"
    assert gang["level"] == "cloud.provider.com/topology-rack"
    assert gang["reserves"] == [gang["domain"]]
    assert sum(a["count"] for a in gang["assignments"]) == 2


def test_plan_in_yaml_says_the_same_as_in_json(run: Run) -> None:
    """Two spellings of one answer."""
    _, as_json, _ = run("plan", "-c", SUPERPOD, "-f", JOB, "-o", "json")
    _, as_yaml, _ = run("plan", "-c", SUPERPOD, "-f", JOB, "-o", "yaml")
    assert yaml.safe_load(as_yaml) == json.loads(as_json)


def test_a_gang_that_can_never_run_exits_with_1_and_holds_nothing(run: Run) -> None:
    """Empty assignments and reserves, a reason token and a message with the numbers."""
    status, out, _ = run("plan", "-c", NVL72, "-f", NEVER, "-o", "json")
    (gang,) = json.loads(out)["gangs"]
    assert status == 1
    assert (gang["decision"], gang["assignments"], gang["reserves"]) == ("rejected", [], [])
    assert gang["reason"].isalnum()
    assert "18 of 19 pods" in gang["message"]


def test_gangs_are_planned_in_order_each_seeing_the_former_ones(run: Run, tmp_path: Path) -> None:
    """Two gangs that each want the only whole rack: the first has it, the second is queued."""
    big = yaml.safe_load((EXAMPLES / "jobset-64-gpus.yaml").read_text())
    other = json.loads(json.dumps(big))
    other["metadata"]["name"] = "other"
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump_all([big, other]))
    status, out, _ = run("plan", "-c", SUPERPOD, "-f", str(file), "-o", "json")
    assert status == 1
    assert [gang["decision"] for gang in json.loads(out)["gangs"]] == ["admitted", "queued"]


def test_the_reserve_option_overrides_the_manifest(run: Run) -> None:
    """`--reserve nodes` holds no whole domain."""
    _, out, _ = run("plan", "-c", SUPERPOD, "-f", JOB, "-o", "json", "--reserve", "nodes")
    assert json.loads(out)["gangs"][0]["reserves"] == []


def test_explain_shows_each_level_that_was_tried(run: Run) -> None:
    """The search as a tree, with what fits where."""
    status, out, _ = run("plan", "-c", NVL72, "-f", NEVER, "--explain")
    assert status == 1
    assert "cloud.provider.com/topology-rack" in out
    assert "19 of 19" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: [", "no YAML"),
        ("spec: {gpus: {{ .Values.gpus }}}", "; a template, as of Helm, must be rendered first"),
        ("- a list", "no Kubernetes object"),
        ("kind: Job", "has no apiVersion"),
        ("a: 1\na: 2", "'a' occurs twice"),
        ("", "no object in it"),
        ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: -1}", "spec.parallelism"),
        ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: 7}", "spec.template"),
    ],
)
def test_a_bad_manifest_is_told_with_file_object_and_field(
    run: Run, tmp_path: Path, text: str, words: str
) -> None:
    """Exit status 2, one line, no traceback."""
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    status, out, err = run("plan", "-c", SUPERPOD, "-f", str(file))
    assert (status, out) == (2, "")
    assert words in err
    assert "bad.yaml" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: -4}}}", "negative"),
        (
            "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 1e30}}}",
            "more than",
        ),
        (
            "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: lots}}}",
            "no quantity",
        ),
        ("{apiVersion: v1, kind: Node, metadata: {}}", "name"),
        (
            "\n---\n".join(["{apiVersion: v1, kind: Node, metadata: {name: twice}}"] * 2),
            "twice",
        ),
        (
            "{apiVersion: kai.scheduler/v1alpha1, kind: Topology, metadata: {name: t}, spec: {levels: []}}",
            "levels",
        ),
    ],
)
def test_a_bad_cluster_file_is_told_with_file_object_and_field(
    run: Run, tmp_path: Path, text: str, words: str
) -> None:
    """Exit status 2, one line, no traceback."""
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    status, _, err = run("plan", "-c", str(file), "-f", JOB)
    assert status == 2
    assert words in err
    assert "cluster.yaml" in err
    assert err.count("\n") == 1


def test_a_file_that_is_not_there_is_told(run: Run) -> None:
    """Its name, and what the system says."""
    status, _, err = run("plan", "-c", "no-such-file.yaml", "-f", JOB)
    assert status == 2
    assert "no-such-file.yaml: cannot be read: No such file" in err


def test_mutate_without_a_cluster_leaves_plan_policies_out_and_says_so(run: Run) -> None:
    """A line on standard error; the object is still made Guaranteed."""
    status, out, err = run("mutate", "-f", JOB)
    assert status == 0
    assert "left out, for lack of" in err
    assert "plan" in err
    assert "bayplan.dev/placement" not in out


def test_mutating_its_own_output_gives_an_empty_patch(run: Run, tmp_path: Path) -> None:
    """What is stored needs no more."""
    _, out, _ = run("mutate", "-c", SUPERPOD, "-f", JOB)
    file = tmp_path / "mutated.yaml"
    file.write_text(out)
    status, patch, _ = run("mutate", "-c", SUPERPOD, "-f", str(file), "-o", "patch")
    assert (status, json.loads(patch)) == (0, [])


def test_mutate_prints_the_object_the_patch_or_the_diff(run: Run) -> None:
    """Four ways to see one change."""
    _, as_yaml, _ = run("mutate", "-c", SUPERPOD, "-f", JOB)
    _, as_json, _ = run("mutate", "-c", SUPERPOD, "-f", JOB, "-o", "json")
    _, patch, _ = run("mutate", "-c", SUPERPOD, "-f", JOB, "-o", "patch")
    _, diff, _ = run("mutate", "-c", SUPERPOD, "-f", JOB, "-o", "diff")
    assert yaml.safe_load(as_yaml) == json.loads(as_json)
    assert {op["op"] for op in json.loads(patch)} <= {"add", "remove", "replace"}
    assert "+      schedulerName: kai-scheduler" in diff


def test_a_refused_object_is_not_printed_and_exits_with_1(run: Run) -> None:
    """The message goes to standard error."""
    status, out, err = run("mutate", "-c", NVL72, "-f", NEVER)
    assert (status, out) == (1, "")
    assert "can never run" in err


def test_a_queued_gang_exits_with_0_and_a_warning_and_its_pods_have_a_gate(run: Run, tmp_path: Path) -> None:
    """It is stored, and its pods wait. Its template has no gate: it would be in each of its pods for ever."""
    in_use = str(EXAMPLES / "clusters" / "nvl72-in-use.yaml")
    status, out, err = run("mutate", "-c", NVL72, in_use, "-f", str(EXAMPLES / "job-nvl72-72-gpus.yaml"))
    assert status == 0
    assert "is queued" in err
    job = yaml.safe_load(out)
    template = job["spec"]["template"]
    assert "schedulingGates" not in template["spec"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "controller": True}
    metadata = {"name": "p", "namespace": job["metadata"]["namespace"], "ownerReferences": [owner]}
    metadata["annotations"] = template["metadata"]["annotations"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(pod))
    _, out, _ = run("mutate", "-c", NVL72, in_use, "-f", str(file))
    assert yaml.safe_load(out)["spec"]["schedulingGates"] == [{"name": "bayplan.dev/queued"}]


@pytest.mark.parametrize("output", ["table", "json", "yaml", "junit", "sarif", "markdown", "html"])
def test_report_speaks_every_format(run: Run, output: str) -> None:
    """Each names the object and fails for a gang that can never run."""
    status, out, _ = run("report", "-c", NVL72, "-f", NEVER, "-o", output)
    assert status == 1
    assert "pretrain-too-large" in out


def test_a_report_of_warnings_alone_exits_as_it_is_told(run: Run) -> None:
    """0 by default, N with --warn-exit-code N."""
    warned = str(EXAMPLES / "job-preferred-above-required.yaml")
    zones = str(EXAMPLES / "clusters" / "two-zones.yaml")
    assert run("report", "-c", zones, "-f", warned)[0] == 0
    assert run("report", "-c", zones, "-f", warned, "--warn-exit-code", "3")[0] == 3


def test_sarif_points_at_the_file_and_the_line(run: Run) -> None:
    """A code-scanning view opens the right place."""
    level = str(EXAMPLES / "job-unknown-level.yaml")
    _, out, _ = run("report", "-c", SUPERPOD, "-f", level, "-o", "sarif")
    failed = [r for r in json.loads(out)["runs"][0]["results"] if r.get("level") == "error"]
    place = failed[0]["locations"][0]["physicalLocation"]
    line = Path(level).read_text().splitlines()[place["region"]["startLine"] - 1]
    assert "topology-required-placement" in line


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "null\n", "apiVersion: v1\nkind: Nod\nmetadata: {name: n}\n"]
)
def test_a_cluster_without_a_node_is_bad_input_and_no_reason_to_refuse_a_gang(
    run: Run, tmp_path: Path, text: str
) -> None:
    """A file that is just being written looks like that."""
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    status, out, err = run("plan", "-c", str(file), "-f", JOB)
    assert (status, out) == (2, "")
    assert "no Node in it" in err


def test_two_objects_of_one_name_are_bad_input(run: Run) -> None:
    """They would be one gang, and one of them would be lost."""
    status, _, err = run("plan", "-c", SUPERPOD, "-f", JOB, JOB)
    assert status == 2
    assert "occurs twice" in err


def test_two_objects_that_are_yet_to_be_named_are_two_gangs(run: Run, tmp_path: Path) -> None:
    """generateName: each has a place of its own, in plan and in mutate."""
    job = yaml.safe_load(Path(JOB).read_text())
    job["metadata"]["generateName"] = job["metadata"].pop("name") + "-"
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump_all([job, job]))
    _, out, _ = run("plan", "-c", SUPERPOD, "-f", str(file), "-o", "json")
    first, second = json.loads(out)["gangs"]
    assert first["name"] != second["name"]
    assert first["reserves"] != second["reserves"]
    _, out, _ = run("mutate", "-c", SUPERPOD, "-f", str(file), "-o", "json")
    ids = {
        stored["metadata"]["annotations"]["bayplan.dev/reservation"] for stored in json.loads(out)["items"]
    }
    assert len(ids) == 2


@pytest.mark.parametrize("command", ["plan", "mutate", "report"])
def test_a_malformed_object_is_bad_input_for_every_command(run: Run, tmp_path: Path, command: str) -> None:
    """Exit status 2, and the field."""
    job = yaml.safe_load(Path(JOB).read_text())
    job["spec"]["parallelism"] = "two"
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    status, out, err = run(command, "-c", SUPERPOD, "-f", str(file))
    assert status == 2
    assert "spec.parallelism" in out + err


@pytest.mark.parametrize("gates", ["x", 5, True, [None], ["a"], {"a": 1}])
def test_malformed_scheduling_gates_are_told(run: Run, tmp_path: Path, gates: object) -> None:
    """A field that only the stamp writes is read with care too."""
    job = yaml.safe_load(Path(JOB).read_text())
    job["spec"]["template"]["spec"]["schedulingGates"] = gates
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    status, _, err = run("mutate", "-c", SUPERPOD, "-f", str(file))
    assert status == 2
    assert "schedulingGates" in err


def test_nodes_without_a_hostname_label_are_pinned_by_name(run: Run, tmp_path: Path) -> None:
    """The pin must match the node that it means."""
    allocatable = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": 8, "pods": 110, "rdma/ib": 8}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": n}, "status": {"allocatable": allocatable}}
        for n in ("n1", "n2")
    ]
    job = yaml.safe_load((EXAMPLES / "job-without-resources.yaml").read_text())
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(nodes))
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    words = ("-c", str(tmp_path / "cluster.yaml"), "-f", str(tmp_path / "job.yaml"))
    status, out, err = run("mutate", *words)
    assert status == 0, err
    affinity = yaml.safe_load(out)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}


def test_a_report_names_the_line_of_each_object_in_a_list(run: Run, tmp_path: Path) -> None:
    """As `kubectl get jobs -A -o json` prints it: the same name in several namespaces."""
    job = yaml.safe_load(Path(NEVER).read_text())
    spaces = [{**job, "metadata": {**job["metadata"], "namespace": name}} for name in ("one", "two")]
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": spaces}, indent=1))
    _, out, _ = run("report", "-c", NVL72, "-f", str(file), "-o", "json")
    refused = [result for result in json.loads(out)["results"] if result["result"] == "fail"]
    lines = [file.read_text().splitlines()[result["line"] - 1] for result in refused]
    assert [result["object"].split("/")[0] for result in refused] == ["one", "two"]
    assert len({result["line"] for result in refused}) == 2
    assert all("required" in line for line in lines), lines
