"""Which decisions of `serve` are handed to the writer of the cluster's Reports."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from tests.webhook.kube.test_reports import Store, form, until
from tests.webhook.report.test_in_cluster import decided
from webhook.cli.installation.cluster_reports import record
from webhook.kube import reports
from webhook.kube.reports import ReportWriter
from webhook.kube.runtime import ClusterRuntime
from webhook.report.in_cluster import DecisionNews
from webhook.wire.request import from_object

JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "research"}}
DECISION = decided("job-six-nodes-one-rack.yaml")
WITHOUT_OWNERS = cast(ClusterRuntime, None)
"""Only pods are asked about their owners."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for."""
    monkeypatch.setattr(reports, "BATCH_SECONDS", 0.01)
    monkeypatch.setattr(reports, "ABSENT_SECONDS", 60.0)


async def test_what_is_decided_before_the_first_look_is_told() -> None:
    """A replica that has just started does not know yet whether Reports are kept; nor while none answers."""
    store = Store()
    writer = ReportWriter[DecisionNews](store, form(), lambda _: True)
    record(writer, WITHOUT_OWNERS, "mutate", from_object(JOB), DECISION)
    await writer.start()
    await until(lambda: store.names() != [])
    await writer.close()


async def test_where_reports_are_not_kept_no_decision_is() -> None:
    """Once the first look has not found the kind."""
    store = Store()
    store.installed = False
    writer = ReportWriter[DecisionNews](store, form(), lambda _: True)
    await writer.start()
    await until(lambda: writer.absent)
    record(writer, WITHOUT_OWNERS, "mutate", from_object(JOB), DECISION)
    store.installed = True
    await writer.close()
    assert store.names() == []


async def test_news_have_no_name_as_long_as_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of them may wait for the next write."""
    writer = ReportWriter[DecisionNews](Store(), form(), lambda _: True)
    obj = {**JOB, "metadata": {"name": "n" * 100_000, "namespace": "research"}}
    queue: list[DecisionNews] = []
    monkeypatch.setattr(ReportWriter, "put", lambda _, news: queue.append(news))
    record(writer, WITHOUT_OWNERS, "mutate", from_object(obj), DECISION)
    assert [news.object for news in queue] == ["research/Job/" + "n" * 252 + "…"]


@pytest.mark.parametrize("metadata", ["text", 1, 1.5, True, ["a"]], ids=str)
async def test_no_report_tells_of_an_object_whose_metadata_are_no_mapping(metadata: object) -> None:
    """It has no name. Each such call was a traceback in the log."""
    store = Store()
    request = replace(from_object(JOB), name="", object={**JOB, "metadata": metadata})
    writer = ReportWriter[DecisionNews](store, form(), lambda _: True)
    record(writer, WITHOUT_OWNERS, "mutate", request, DECISION)
    await writer.start()
    await writer.close()
    assert store.names() == []
