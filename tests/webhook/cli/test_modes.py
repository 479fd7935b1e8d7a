"""Modes on the command line: Namespace objects among the files say them, and `--mode` for all others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.calls import EXAMPLES
from webhook.cli.main import main

HALL = str(EXAMPLES / "clusters" / "superpod-32.yaml")
FITS, NEVER = (str(EXAMPLES / f"{name}.yaml") for name in ("job-six-nodes-one-rack", "job-unknown-level"))
Run = Any


@pytest.fixture
def team(tmp_path: Path) -> Any:
    """A file with the namespace of the examples, labelled with a mode."""

    def labelled(mode: str) -> str:
        file = tmp_path / "namespace.yaml"
        metadata = {"name": "research", "labels": {"bayplan.dev/mode": mode}}
        file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
        return str(file)

    return labelled


@pytest.mark.parametrize("mode", ["warn", "audit", "off"])
@pytest.mark.parametrize("place", ["cluster", "manifests", "--mode"])
def test_mutate_prints_the_object_as_it_came(run: Run, team: Any, mode: str, place: str) -> None:
    """The Namespace says it, wherever it stands, before `--mode`; nothing is refused, and the status is 0."""
    cluster, words = [HALL], ["--mode", "enforce"]
    if place == "--mode":
        words = ["--mode", mode]
    elif place == "cluster":
        cluster.append(team(mode))
    for manifest in (FITS, NEVER):
        files = [manifest, *([team(mode)] if place == "manifests" else [])]
        status, out, _ = run("mutate", "-c", *cluster, "-f", *files, *words)
        assert status == 0
        assert next(yaml.safe_load_all(out)) == yaml.safe_load(Path(manifest).read_text())


def test_a_label_comes_before_the_flag(run: Run, team: Any) -> None:
    """A namespace that is enforced is so whatever others are."""
    status, _, err = run("mutate", "-c", HALL, team("enforce"), "-f", NEVER, "--mode", "audit")
    assert status == 1
    assert "refused: research/Job/unknown-level" in err


def test_mutate_tells_what_would_be_in_warn_and_that_nothing_is_done_in_audit(run: Run) -> None:
    """On standard error, a line each."""
    assert (
        "Warning: research/Job/unknown-level: would be refused: policy"
        in run("mutate", "-c", HALL, "-f", NEVER, "--mode", "warn")[2]
    )
    for mode in ("audit", "off"):
        _, _, err = run("mutate", "-c", HALL, "-f", NEVER, "--mode", mode)
        line = f"research/Job/unknown-level: mode {mode}: nothing is changed, refused or held"
        assert line in err.splitlines()
        assert "Warning" not in err


def test_what_is_not_held_takes_no_place_from_the_next(run: Run) -> None:
    """Each gang of a namespace in audit is decided by itself, as it is in a cluster."""
    _, out, _ = run("report", "-c", HALL, "-f", FITS, FITS, "-o", "json", "--mode", "audit")
    places = [row["message"] for row in json.loads(out)["results"] if row["policy"] == "plan"]
    assert len(places) == 2
    assert places[0] == places[1]


@pytest.mark.parametrize(("mode", "outcome", "status"), [("enforce", "fail", 1), ("audit", "warn", 0)])
def test_report_tells_a_refusal_as_a_finding_where_nobody_is_refused(
    run: Run, mode: str, outcome: str, status: int
) -> None:
    """A warning that names the mode; --warn-exit-code counts it."""
    words = ("report", "-c", HALL, "-f", NEVER, "-o", "json", "--mode", mode)
    exit_status, out, _ = run(*words)
    assert exit_status == status
    (row,) = [row for row in json.loads(out)["results"] if row["policy"] == "plan"]
    assert row["result"] == outcome
    assert row["message"].endswith("(mode audit: not refused)") is (mode == "audit")
    assert row["properties"].get("mode") == (None if mode == "enforce" else mode)
    assert run(*words, "--warn-exit-code", "7")[0] == (1 if mode == "enforce" else 7)


def of_objects(out: str) -> list[Any]:
    """The results of a report but for those of the namespaces, which are in no file here."""
    return [row for row in json.loads(out)["results"] if row["policy"] != "namespace"]


def test_report_says_in_each_result_what_the_mode_would_do(run: Run) -> None:
    """What would be changed, held or refused is told with the mode in which it is not."""
    _, out, _ = run("report", "-c", HALL, "-f", FITS, "-o", "json", "--mode", "warn")
    rows = of_objects(out)
    assert {row["properties"]["mode"] for row in rows} == {"warn"}
    changes = [row["message"] for row in rows if row["rule"] == "mutation"]
    assert changes
    assert all(message.endswith("(mode warn: not changed)") for message in changes)
    (plan,) = [row["message"] for row in rows if row["policy"] == "plan"]
    assert plan.endswith("(mode warn: not held)")


def test_report_skips_what_nobody_looks_at(run: Run) -> None:
    """One line for each object in mode off."""
    status, out, _ = run("report", "-c", HALL, "-f", NEVER, "-o", "json", "--mode", "off")
    (row,) = of_objects(out)
    assert (status, row["result"], row["message"]) == (0, "skip", "the namespace has mode off")


def test_plan_plans_whatever_the_mode_and_says_so(run: Run, team: Any) -> None:
    """It is a question; the answer is the same, with a line for the namespace."""
    asked = ("plan", "-c", HALL, "-f", FITS, "-o", "json")
    status, out, err = run(*asked)
    for words in (("--mode", "audit"), ("-c", team("audit"))):
        assert run(*asked, *words) == (
            status,
            out,
            err + "namespace research has mode audit: nothing is held, queued or refused there\n",
        )


@pytest.mark.parametrize("command", ["mutate", "report", "plan"])
def test_a_label_that_is_no_mode_is_told(run: Run, team: Any, command: str) -> None:
    """With the valid ones; `--mode` serves."""
    extra = ("-o", "json") if command == "report" else ()
    _, out, err = run(command, "-c", HALL, team("enforced"), "-f", FITS, "--mode", "audit", *extra)
    assert 'label bayplan.dev/mode is "enforced"; valid are enforce, warn, audit, off' in (out + err).replace(
        '\\"', '"'
    )


@pytest.mark.parametrize("command", ["mutate", "report", "plan", "serve"])
def test_an_unknown_mode_is_a_usage_error(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, naming the valid ones."""
    with pytest.raises(SystemExit) as stopped:
        main([command, "-c", HALL, "-f", FITS, "--mode", "enforced"])
    assert stopped.value.code == 2
    assert "choose from enforce, warn, audit, off" in capsys.readouterr().err.replace("'", "")
