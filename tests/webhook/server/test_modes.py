"""Modes over HTTP: what is answered, counted and logged in a namespace that is not enforced."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from planner.ledger.ledger import LedgerUnavailable
from planner.ledger.sqlite import SqliteLedger
from planner.model.reservation import Book
from tests.webhook.calls import EXAMPLES, Serve, clusters, example
from webhook.admission.configuration.settings import MODES, Settings
from webhook.cli.cluster_files.watched import ClusterFiles
from webhook.server.cluster_source import NoCluster
from webhook.workloads.options import MODE

FITS, NEVER = "job-six-nodes-one-rack", "job-unknown-level"


def hall(mode: Any) -> ClusterFiles:
    """An example cluster whose namespaces all have this mode."""
    return ClusterFiles([str(EXAMPLES / "clusters" / "superpod-32.yaml")], Settings(mode))


async def test_a_week_in_audit_leaves_no_trace_but_in_metrics_and_logs(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """No patch, no refusal, no reservation; counters and the log know what enforce would have done."""
    with caplog.at_level(logging.INFO, "bayplan"):
        async with serve(cluster=hall("audit")) as asked:
            for name in (FITS, NEVER):
                for call in (asked.mutate, asked.validate):
                    response = await call(example(name))
                    assert response["allowed"]
                    assert {"patch", "warnings"}.isdisjoint(response)
            assert await asked.holders() == []
            text = await (await asked.client.get("/metrics")).text()
    for outcome in ("changed", "refused"):
        assert f'bayplan_outcomes_total{{mode="audit",outcome="{outcome}"}} 1.0' in text
    assert 'bayplan_decisions_total{allowed="true",mode="audit",phase="mutate"} 2.0' in text
    assert 'bayplan_plans_total{decision="admitted",mode="audit",phase="mutate"} 1.0' in text
    lines = [orjson.loads(record.message) for record in caplog.records if '"decision"' in record.message]
    assert [(line["mode"], line["outcome"]) for line in lines[::2]] == [
        ("audit", "changed"),
        ("audit", "refused"),
    ]


async def test_what_was_held_in_enforce_is_released_when_it_is_deleted_in_audit(serve: Serve) -> None:
    """The namespace has changed its mode since; also where nothing is looked at any more."""
    for mode in ("audit", "warn", "off"):
        async with serve("superpod-32") as asked:
            await asked.mutate(example(FITS))
            assert await asked.holders() == ["research/Job/pretrain-medium"]
        async with serve(cluster=hall(mode)) as asked:
            await asked.validate(example(FITS), operation="DELETE", dry_run=True)
            assert await asked.holders() == ["research/Job/pretrain-medium"]
            await asked.validate(example(FITS), operation="DELETE")
            assert await asked.holders() == []


class NoBook(SqliteLedger):
    """A ledger that cannot be reached."""

    async def book(self, now: float, names: Iterable[str] = ()) -> Book:
        """Never."""
        raise LedgerUnavailable("gone")


@pytest.mark.parametrize("mode", MODES)
async def test_without_a_ledger_only_what_is_enforced_is_refused(
    serve: Serve, tmp_path: Any, mode: Any
) -> None:
    """No place can be reserved, and elsewhere none would be."""
    async with serve(cluster=hall(mode), ledger=NoBook(tmp_path / "none.db")) as asked:
        response = await asked.mutate(example(FITS))
    assert response["allowed"] is (mode != "enforce")
    assert ("warnings" in response) is (mode == "warn")


@pytest.mark.parametrize(("operation", "words"), [("CREATE", "reserved now"), ("DELETE", "released now")])
async def test_without_a_ledger_a_refusal_says_what_cannot_be_done(
    serve: Serve, tmp_path: Any, operation: str, words: str
) -> None:
    """A deletion is refused too, so that its caller repeats it: the place would stay reserved otherwise."""
    async with serve(cluster=hall("enforce"), ledger=NoBook(tmp_path / "none.db")) as asked:
        response = await asked.validate(example(FITS), operation=operation)
    assert response["status"]["message"] == f"no place can be {words}: gone"


@pytest.mark.parametrize("mode", MODES)
async def test_readiness_says_the_mode_of_namespaces_without_the_label(serve: Serve, mode: Any) -> None:
    """With a cluster and without one."""
    for source in (hall(mode), NoCluster(Settings(mode))):
        async with serve(cluster=source) as asked:
            detail = orjson.loads(await (await asked.client.get("/readyz")).read())
        assert detail["settings"]["mode"] == mode


class Late(ClusterFiles):
    """A cluster whose namespaces are seen at the third look."""

    looks = 0

    def knows_namespace(self, name: str) -> bool:
        """From the third time on."""
        self.looks += 1
        return self.looks > 2


async def test_what_comes_together_with_its_namespace_waits_until_its_label_is_known(serve: Serve) -> None:
    """`kubectl apply` of both at once: the watch may be a moment behind."""
    late = Late([str(EXAMPLES / "clusters" / "superpod-32.yaml")])
    async with serve(cluster=late) as asked:
        await asked.mutate(example(FITS))
    assert late.looks == 3


def test_the_examples_say_no_mode() -> None:
    """The tests' `Settings` alone set it."""
    assert "bayplan.dev/mode" not in str(clusters("superpod-32").environment().namespaces)


@pytest.mark.parametrize("mode", MODES)
async def test_a_label_that_is_no_mode_is_told_when_the_namespace_is_labelled(
    serve: Serve, mode: Any
) -> None:
    """At once, though nobody has seen that namespace yet, whatever the mode of all others is."""
    labels = {"metadata": {"name": "new", "labels": {MODE: "enforced"}}}
    space = {"apiVersion": "v1", "kind": "Namespace", **labels}
    async with serve(cluster=hall(mode)) as asked:
        response = await asked.validate(space)
        assert response["allowed"]
        warning = " ".join(response["warnings"])
        assert f'label {MODE} is "enforced"; valid are enforce, warn, audit, off. ' in warning
        assert f"Mode {mode} applies" in warning
        space["metadata"] = {"name": "new", "labels": {MODE: "warn"}}  # type: ignore[assignment]
        assert "warnings" not in await asked.validate(space)


async def test_readyz_tells_which_namespaces_have_a_label_that_is_no_mode(
    serve: Serve, tmp_path: Path
) -> None:
    """Its workloads are told too; whoever looks at the installation need not wait for one."""
    nodes = (EXAMPLES / "clusters" / "superpod-32.yaml").read_text()
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "research", "labels": {MODE: "enforced"}},
    }
    (tmp_path / "cluster.yaml").write_text(f"{nodes}\n---\n{yaml.safe_dump(space)}")
    async with serve(cluster=ClusterFiles([str(tmp_path / "cluster.yaml")])) as asked:
        readiness = await (await asked.client.get("/readyz")).json()
    (warning,) = readiness["settings"]["warnings"]
    assert warning.startswith(f'namespace research: label {MODE} is "enforced"')
