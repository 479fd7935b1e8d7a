"""Monitoring: one source for kustomize and Helm, and a section of the page for every alert."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.manifests import chart, monitoring
from webhook.server.metrics import metrics

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "monitoring.md").read_text()
RULES = yaml.safe_load((monitoring.COMPONENT / "rules.yaml").read_text())["spec"]["groups"]
ALERTS: list[Any] = [rule for group in RULES for rule in group["rules"]]
EXPRESSIONS = [expression for panel in monitoring.PANELS for expression, _ in panel.queries]
OURS = re.compile(r"\b((?:bayplan|topology)_\w+)")


def families() -> set[str]:
    """The names of all that a server shows, with the suffixes of counters and histograms."""
    names: set[str] = set()
    for family in metrics().registry.collect():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
        names |= {family.name + suffix for suffix in suffixes.get(family.type, ("",))}
    return names


def test_the_dashboard_is_the_one_that_is_generated() -> None:
    """`python -m tests.manifests.generate` writes it."""
    assert monitoring.DASHBOARD.read_text() == monitoring.text()


@pytest.mark.parametrize("name", chart.MONITORING)
def test_helm_makes_the_text_of_the_component(name: str) -> None:
    """But for the braces of Prometheus and Grafana, which Helm is told to leave."""
    text = (monitoring.COMPONENT / f"{name}.yaml").read_text()
    template = monitoring.literal(text)
    assert "{{" not in template.replace("{{ `{{` }}", "")
    assert template.replace("{{ `{{` }}", "{{") == text


def test_the_dashboard_is_whole() -> None:
    """JSON in one key, panels with a title, a description and a query each, that do not overlap."""
    (board,) = yaml.safe_load(monitoring.DASHBOARD.read_text())["data"].values()
    panels = json.loads(board)["panels"]
    assert len(panels) == len(monitoring.PANELS)
    assert all(panel["title"] and panel["description"] and panel["targets"] for panel in panels)
    cells = [
        (place["x"] + x, place["y"] + y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


@pytest.mark.parametrize("expression", [*EXPRESSIONS, *(rule["expr"] for rule in ALERTS)])
def test_what_is_asked_for_is_a_metric_that_a_server_has(expression: str) -> None:
    """By its full name."""
    assert set(OURS.findall(expression)) <= families()
    assert OURS.findall(expression)


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_each_alert_has_a_section_that_says_what_to_do(rule: Any) -> None:
    """Under the heading that its runbook names, with what it means, why, and what to do."""
    annotations = rule["annotations"]
    assert annotations["summary"].endswith(".")
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert annotations["runbook"] == f"docs/monitoring.md#{rule['alert'].lower()}"
    section = PAGE.partition(f"\n### {rule['alert']}\n")[2].partition("\n### ")[0]
    assert len(section) > 200


def test_labels_are_bounded() -> None:
    """None is a name out of an object: labels are policies, modes, answers, ages, phases, domains, files."""
    bounded = {"phase", "allowed", "mode", "outcome", "policy", "answer", "decision", "status", "revision"}
    bounded |= {
        "reserve_default",
        "age",
        "certificate",
        "strategy",
        "result",
        "topology",
        "domain",
        "exception",
    }
    labels = {
        label
        for instrument in metrics().registry._collector_to_names
        for label in getattr(instrument, "_labelnames", ())
    }
    assert labels <= bounded
