"""The alerts, by promtool: each fires for what it is about, and not before its time."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.manifests.monitoring import COMPONENT

SPEC = yaml.safe_load((COMPONENT / "rules.yaml").read_text())["spec"]
RULES: dict[str, Any] = {rule["alert"]: rule for group in SPEC["groups"] for rule in group["rules"]}
UP = {f'bayplan_reload_failed{{instance="{name}"}}': "0x3000" for name in "abc"}
"""Three replicas with which all is well."""

Series = dict[str, str]
CASES: dict[str, tuple[Series, Series, str]] = {
    "BayplanDown": (UP, {}, "5m"),
    "BayplanReplicasFew": (UP, {'bayplan_reload_failed{instance="a"}': "0x3000"}, "15m"),
    "BayplanCallsFail": (
        UP | {'bayplan_bad_calls_total{status="404"}': "0+5x3000"},
        UP | {'bayplan_bad_calls_total{status="504",instance="a"}': "0+1x3000"},
        "11m",
    ),
    "BayplanDecisionsSlow": (
        UP | {
            'bayplan_decision_seconds_bucket{phase="mutate",le="1.0"}': "0+9x3000",
            'bayplan_decision_seconds_bucket{phase="mutate",le="+Inf"}': "0+9x3000",
        },
        UP | {
            'bayplan_decision_seconds_bucket{phase="mutate",le="1.0"}': "0+9x3000",
            'bayplan_decision_seconds_bucket{phase="mutate",le="2.5"}': "0+10x3000",
            'bayplan_decision_seconds_bucket{phase="mutate",le="+Inf"}': "0+10x3000",
        },
        "16m",
    ),
    "BayplanReloadFailed": (UP, UP | {'bayplan_reload_failed{instance="b"}': "1x3000"}, "10m"),
    "BayplanRevisionsDiffer": (
        UP | {f'bayplan_policy_set_info{{revision="1",instance="{name}"}}': "1x3000" for name in "ab"},
        UP | {f'bayplan_policy_set_info{{revision="{name}",instance="{name}"}}': "1x3000" for name in "ab"},
        "30m",
    ),
    "BayplanPolicyFails": (
        UP | {'bayplan_policy_answers_total{policy="mig",answer="refused",mode="enforce"}': "0+1x3000"},
        UP | {'bayplan_policy_answers_total{policy="mig",answer="failed",mode="enforce"}': "0+1x3000"},
        "16m",
    ),
    "BayplanCertificateEnds": (
        UP | {'bayplan_certificate_expiry_timestamp_seconds{certificate="serving"}': f"{20 * 86400}x3000"},
        UP | {'bayplan_certificate_expiry_timestamp_seconds{certificate="serving"}': f"{6 * 86400}x3000"},
        "1h",
    ),
    "BayplanGangsWaitLong": (
        UP | {'bayplan_waiting_gangs{age="1d",instance="a"}': "4x3000"},
        UP | {'bayplan_waiting_gangs{age="older",instance="a"}': "2x3000"},
        "1h",
    ),
    "BayplanHoldsUnused": (
        UP | {'bayplan_unused_reservations{age="1h",instance="a"}': "4x3000"},
        UP | {'bayplan_unused_reservations{age="1d",instance="a"}': "2x3000"},
        "30m",
    ),
    "BayplanFragmented": (
        UP | {'topology_scheduler_domain_fragmentation_ratio{topology="t",domain="r"}': "0.4x3000"},
        UP | {'topology_scheduler_domain_fragmentation_ratio{topology="t",domain="r"}': "0.6x3000"},
        "6h",
    ),
}  # fmt: skip
"""By alert: series with which it is silent, those with which it fires, from when on; a sample a minute."""


def test_every_alert_has_a_case() -> None:
    """None is added without one."""
    assert list(CASES) == list(RULES)


def run(programs: Path, tmp_path: Path, *tests: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """promtool's verdict on these tests of the rules that ship."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(SPEC))
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": list(tests)}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(document))
    command = [str(programs / "promtool"), "test", "rules", "test.yaml"]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


def firing(name: str, series: Series, moment: str, fires: bool) -> dict[str, Any]:
    """A test that the alert fires at a moment, by its name alone, or not."""
    query = f'count(ALERTS{{alertname="{name}",alertstate="firing"}})'
    return {
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [
            {
                "expr": query,
                "eval_time": moment,
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
        ],
    }


def test_the_rules_are_rules(programs: Path, tmp_path: Path) -> None:
    """promtool reads them."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(SPEC))
    command = [str(programs / "promtool"), "check", "rules", str(tmp_path / "rules.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(RULES)} rules found" in done.stdout


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_for_what_it_is_about(name: str, programs: Path, tmp_path: Path) -> None:
    """From its time on, not before, and not while all is well."""
    well, ill, moment = CASES[name]
    done = run(
        programs,
        tmp_path,
        firing(name, well, "12h", fires=False),
        firing(name, ill, "4m", fires=False),
        firing(name, ill, "24h", fires=True),
        firing(name, ill, moment, fires=True),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_tells_a_wrong_expectation(programs: Path, tmp_path: Path) -> None:
    """So that these tests can fail."""
    _, ill, _ = CASES["BayplanDown"]
    assert run(programs, tmp_path, firing("BayplanDown", ill, "1h", fires=False)).returncode != 0
