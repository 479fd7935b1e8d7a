"""`bayplan replay`, as a pull request against the policies runs it."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.webhook.calls import EXAMPLES
from tests.webhook.journal.traffic import ENFORCED, EVERY, IMAGES, NOTHING, Traffic, job, pod
from tests.webhook.policy.helpers import check, validating
from webhook.cli.cluster_files.reading import read_cluster_files
from webhook.report.formats import FORMATS

SUPERPOD = str(EXAMPLES / "clusters" / "superpod-32.yaml")


@pytest.fixture
def journal(tmp_path: Path) -> str:
    """Three pods of two namespaces, two with another tag."""
    traffic = Traffic()
    for name, image, namespace in (("a", "x:2", "research"), ("b", "x:2", "shop"), ("c", "x:1", "shop")):
        traffic.call(pod(name, image, namespace), 1_772_366_400)
    return str(traffic.file(tmp_path / "journal.jsonl"))


@pytest.fixture
def strict(tmp_path: Path) -> str:
    """A policy that refuses other tags."""
    policy = validating(check(IMAGES, message="another tag"), name="tags", rule=EVERY)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "policy.yaml").write_text(yaml.safe_dump(policy))
    return str(tmp_path / "policies")


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_newly_refused_is_told_in_every_format_and_fails(form, journal, strict, run):  # type: ignore[no-untyped-def]
    """By policy and namespace; CI stops."""
    status, out, err = run("replay", journal, "-p", strict, "-o", form)
    assert status == 1
    objects = ("name: a", "name: b") if form == "yaml" else ("research/Pod/a", "shop/Pod/b")
    for word in ("tags", "NewlyRefused", *objects):
        assert word in out
    assert "3 admissions from 2026-03-01T12:00:00Z to 2026-03-01T12:00:00Z decided again" in err
    assert "refused: 2 where it was 0" in err


def test_json_counts_by_policy_and_namespace(journal, strict, run):  # type: ignore[no-untyped-def]
    """What becomes of all of them, too."""
    _, out, _ = run("replay", journal, "-p", strict, "-o", "json")
    document = json.loads(out)
    assert document["policies"]["tags"]["fail"] == 2
    assert document["namespaces"]["shop"] == {"refused": 1, "queued": 0, "changed": 0, "unchanged": 1}


def test_where_nothing_is_different_the_status_is_0(tmp_path, run):  # type: ignore[no-untyped-def]
    """With the policies that decided."""
    traffic = Traffic()
    traffic.call(pod("c"), 1)
    policy = validating(check("true"), name="nothing", rule=EVERY)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    path = str(traffic.file(tmp_path / "journal.jsonl"))
    assert run("replay", path, "-p", str(tmp_path / "policy.yaml"))[0] == 0


def test_a_difference_that_refuses_nobody_counts_where_it_is_told_to(journal, strict, tmp_path, run):  # type: ignore[no-untyped-def]
    """--warn-exit-code, as in a report."""
    audited = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": {"bayplan.dev/mode": "audit"}}}
    spaces = [{**audited, "metadata": {**audited["metadata"], "name": name}} for name in ("research", "shop")]
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(spaces))
    words = ("replay", journal, "-p", strict, "-c", SUPERPOD, str(tmp_path / "cluster.yaml"))
    assert run(*words)[0] == 0
    assert run(*words, "--warn-exit-code", "3")[0] == 3


def test_parameters_of_a_file_are_those_in_force(journal, tmp_path, run):  # type: ignore[no-untyped-def]
    """In place of the cluster's; a file without them is refused."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bayplan-parameters"}}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({**config, "data": {"mode": "audit"}}))
    assert run("replay", journal, "--parameters", str(tmp_path / "p.yaml"))[0] == 0
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({**config, "metadata": {"name": "other"}}))
    status, _, err = run("replay", journal, "--parameters", str(tmp_path / "p.yaml"))
    assert (status, "holds no ConfigMap bayplan-parameters" in err) == (2, True)


@pytest.fixture
def gangs(tmp_path: Path) -> str:
    """Two gangs of twelve nodes where twenty are free: the second waits for the first."""
    snapshot, around = read_cluster_files([SUPERPOD])
    traffic = Traffic(NOTHING, snapshot, replace(around, settings=ENFORCED.settings))
    for name, second in (("first", 0), ("second", 600)):
        traffic.stored(job(name, 12), 1_772_366_400 + second)
    traffic.call(job("first", 12), 1_772_370_000, "validate", "DELETE")
    traffic.call(pod("tick"), 1_772_370_000)
    traffic.call(pod("tock"), 1_772_373_600)
    return str(traffic.file(tmp_path / "gangs.jsonl"))


def test_utilisation_and_queue_are_told_as_they_were_and_as_they_would_be(gangs, tmp_path, run):  # type: ignore[no-untyped-def]
    """In the formats for people, in JSON, and drawn, as `simulate` draws its strategies."""
    words = ("replay", gangs, "-c", SUPERPOD)
    table, markdown, html = (run(*words, "-o", form)[1] for form in ("table", "markdown", "html"))
    for text in (table, markdown, html):
        for word in ("recorded", "replayed", "GPUs running", "gangs waiting", "held idle"):
            assert word in text
    document = json.loads(run(*words, "-o", "json")[1])
    recorded, replayed = document["figures"]["recorded"], document["figures"]["replayed"]
    assert recorded["running"] == replayed["running"] == pytest.approx((87 + 96) / 256, abs=1e-4)
    assert recorded["waits"][3]["gangs"] == replayed["waits"][3]["gangs"] == 2
    assert replayed["waits"][3]["meanSeconds"] == 1500
    for file in (tmp_path / "week.svg", tmp_path / "week.html"):
        _, _, err = run(*words, "--plot", str(file))
        assert f"plot: {file}" in err
        assert file.read_text().count("<polyline") == 8
        assert "replayed" in file.read_text()


def test_a_pipe_is_read_once_and_that_is_told(gangs, tmp_path, run):  # type: ignore[no-untyped-def]
    """All of it is decided again, as from a file; only runs that begin earlier end as they did."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=lambda: pipe.write_bytes(Path(gangs).read_bytes()), daemon=True).start()
    status, out, err = run("replay", str(pipe), "-c", SUPERPOD)
    assert (status, "a pipe is read once" in err) == (0, True)
    assert out == run("replay", gangs, "-c", SUPERPOD)[1]


def test_a_plot_without_a_cluster_is_refused_and_without_gangs_not_written(journal, tmp_path, run):  # type: ignore[no-untyped-def]
    """There is nothing to draw, and that is said."""
    status, _, err = run("replay", journal, "--plot", str(tmp_path / "p.svg"))
    assert (status, "give a cluster with -c" in err) == (2, True)
    _, out, err = run("replay", journal, "-c", SUPERPOD, "--plot", str(tmp_path / "p.svg"))
    assert "not written, for no gang has or wants GPUs" in err
    assert "GPUs running" not in out
    assert not (tmp_path / "p.svg").exists()


@pytest.mark.parametrize("content", ["", "{}", '{"bayplanJournal":9}\n'])
def test_a_file_of_which_nothing_can_be_read_is_bad_input(content, tmp_path, run):  # type: ignore[no-untyped-def]
    """And it says why: a comparison of nothing is no good news."""
    (tmp_path / "j.jsonl").write_text(content)
    status, _, err = run("replay", str(tmp_path / "j.jsonl"))
    assert status == 2
    assert "no admission was decided again" in err
