"""The Grafana dashboard of manifests/components/monitoring, and the chart's templates of that component:
`python -m tests.manifests.generate` writes both.

A panel is a row of `PANELS`. What replicas count is added; of what stands in the cluster, which each of them
tells, the largest is taken.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
COMPONENT = Path(__file__).parents[2] / "manifests" / "components" / "monitoring"
DASHBOARD = COMPONENT / "dashboard.yaml"
UID = "bayplan"
RACKS = 30
"""Domains that a panel shows: a legend of a thousand racks tells nobody anything."""


@dataclass(frozen=True, slots=True)
class Panel:
    """`queries`: PromQL with its legend. `kind` and `unit` are Grafana's words."""

    title: str
    description: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 12
    height: int = 8


def _quantile(share: str) -> str:
    rate = "rate(bayplan_decision_seconds_bucket[$__rate_interval])"
    return f"histogram_quantile({share}, sum by (phase, le) ({rate}))"


def _rate(counter: str, labels: str) -> str:
    return f"sum by ({labels}) (rate({counter}[$__rate_interval]))"


def _by_domain(metric: str) -> str:
    return f"topk({RACKS}, max by (topology, domain) ({metric}))"


PANELS = (
    Panel(
        "Replicas",
        "That are scraped.",
        (("count(bayplan_reload_failed)", "replicas"),),
        "short",
        "stat",
        6,
        4,
    ),
    Panel(
        "Reloads that fail",
        "Replicas that serve older policies, parameters or files, for the newest are bad.",
        (("sum(bayplan_reload_failed)", "replicas"),),
        "short",
        "stat",
        6,
        4,
    ),
    Panel(
        "Certificate",
        "Days until the serving certificate ends.",
        (("(min(bayplan_certificate_expiry_timestamp_seconds) - time()) / 86400", "days"),),
        "d",
        "stat",
        6,
        4,
    ),
    Panel(
        "Revisions",
        "Of the policies that answer: one, but for a minute after a change.",
        (("count(count by (revision) (bayplan_policy_set_info))", "revisions"),),
        "short",
        "stat",
        6,
        4,
    ),
    Panel(
        "Admission latency",
        "Time to answer a call; the API server waits 5 s.",
        ((_quantile("0.5"), "{{phase}} median"), (_quantile("0.99"), "{{phase}} 99 %")),
        "s",
    ),
    Panel(
        "Calls",
        "By phase and answer; bad calls are those answered with a 4xx or 5xx.",
        (
            (
                _rate("bayplan_decisions_total", "phase, allowed"),
                "{{phase}} allowed={{allowed}}",
            ),
            (_rate("bayplan_bad_calls_total", "status"), "bad call {{status}}"),
        ),
        "reqps",
    ),
    Panel(
        "Decisions by policy and answer",
        "What each policy changed, refused or warned of, and where it failed.",
        (
            (
                _rate('bayplan_policy_answers_total{answer!="passed"}', "policy, answer"),
                "{{policy}} {{answer}}",
            ),
        ),
        "reqps",
    ),
    Panel(
        "What becomes of objects",
        "In the modes audit and warn: what enforce would make of them.",
        (
            (
                _rate("bayplan_outcomes_total", "outcome, mode"),
                "{{outcome}} ({{mode}})",
            ),
        ),
        "reqps",
    ),
    Panel(
        "Gangs planned by answer",
        "Admitted, queued and rejected.",
        (
            (
                _rate('bayplan_plans_total{phase="mutate"}', "decision"),
                "{{decision}}",
            ),
        ),
        "reqps",
    ),
    Panel(
        "Queue by age",
        "Gangs that wait for a place, by how long they have waited.",
        (("max by (age) (bayplan_waiting_gangs)", "{{age}}"),),
    ),
    Panel(
        "Holds without users by age",
        "Reservations with no pod on a node, by how long they are held.",
        (("max by (age) (bayplan_unused_reservations)", "{{age}}"),),
    ),
    Panel(
        "Utilisation by rack",
        "Share of GPUs that are allocated or held: the highest.",
        ((_by_domain("topology_domain_utilization_ratio"), "{{topology}} {{domain}}"),),
        "percentunit",
    ),
    Panel(
        "Fragmentation by rack",
        "Share of nodes that are partly used: the highest.",
        ((_by_domain("topology_scheduler_domain_fragmentation_ratio"), "{{topology}} {{domain}}"),),
        "percentunit",
    ),
)


def dashboard() -> Json:
    """The dashboard as Grafana reads it, its panels in rows of 24 columns."""
    panels, column, line, tallest = [], 0, 0, 0
    for number, panel in enumerate(PANELS, 1):
        if column + panel.width > 24:
            column, line, tallest = 0, line + tallest, 0
        place = {"h": panel.height, "w": panel.width, "x": column, "y": line}
        panels.append(_panel(number, panel, place))
        column, tallest = column + panel.width, max(tallest, panel.height)
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "uid": UID,
        "title": "Bayplan",
        "tags": ["bayplan", "kubernetes", "gpu"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source]},
        "panels": panels,
    }


def _panel(number: int, panel: Panel, place: Json) -> Json:
    source = {"type": "prometheus", "uid": "${datasource}"}
    targets = [
        {"refId": chr(ord("A") + row), "datasource": source, "expr": expression, "legendFormat": legend}
        for row, (expression, legend) in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": source,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


HEADER = """\
# Written by `python -m tests.manifests.generate` (tests/manifests/monitoring.py). Grafana's sidecar takes up
# ConfigMaps with the label grafana_dashboard; or import the JSON by hand.
"""


def text() -> str:
    """The text of dashboard.yaml: a ConfigMap whose one key is the dashboard's JSON."""
    lines = json.dumps(dashboard(), indent=1).splitlines()
    body = "".join(f"    {line}\n" for line in lines)
    return (
        f"{HEADER}apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bayplan-dashboard\n"
        "  namespace: bayplan-system\n  labels:\n    app.kubernetes.io/name: bayplan\n"
        '    grafana_dashboard: "1"\n'
        f"data:\n  bayplan.json: |\n{body}"
    )


def literal(template: str) -> str:
    """The text for Helm, in which the braces of Prometheus and Grafana are none of its own."""
    return template.replace("{{", "{{ `{{` }}")
