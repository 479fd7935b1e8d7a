"""Write docs/reference/metrics.md from the registries: `python -m tests.docs.generate_metrics`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.metrics import MetricWrapperBase

from tests.docs.markdown import code, table
from webhook.journal.writer import dropped_admissions
from webhook.kube.controller.recovery_metrics import recovery_histogram
from webhook.kube.moving.metrics import MoveMetrics
from webhook.kube.reports import unreported_decisions
from webhook.server.metrics import metrics
from webhook.server.workers.pool import living_workers, started_workers

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}

HEADER = """\
# Metrics

Written by `python -m tests.docs.generate_metrics` from the registries of the code. Each replica serves them
on `/metrics`. What replicas count is added (`sum`); what stands in the cluster each of them tells alike, so
it is taken once (`max`). Labels are few and bounded: none is the name of a user, an object or a namespace.
[monitoring.md](../monitoring.md) has the alerts on them, and a dashboard.

"""


def instruments() -> Iterator[MetricWrapperBase]:
    """Those of a server, and those that controller, Reports, journal and workers register there."""
    yield from dict.fromkeys(metrics().registry._collector_to_names)
    yield from (recovery_histogram(), unreported_decisions(), dropped_admissions())
    yield from MoveMetrics.new().all
    yield from (started_workers(), living_workers())


def family(instrument: MetricWrapperBase) -> Metric:
    """Its name, type and help."""
    (described,) = instrument.describe()
    return described


def series(instrument: MetricWrapperBase) -> tuple[str, ...]:
    """The names under which Prometheus has it."""
    described = family(instrument)
    return tuple(described.name + suffix for suffix in SUFFIXES.get(described.type, ("",)))


def page() -> str:
    """The whole page."""
    columns = ("metric", "type", "labels", "what it tells")
    rows = sorted(map(_row, instruments()))
    return HEADER + table(columns, rows)


def _row(instrument: MetricWrapperBase) -> tuple[str, ...]:
    described = family(instrument)
    help_text = described.documentation
    return f"`{series(instrument)[0]}`", described.type, code(instrument._labelnames), help_text


if __name__ == "__main__":
    PAGE.write_text(page())
