"""What replicas tell of themselves in their metrics, as the page shows it."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.replicas import PORT, SELECTOR
from webhook.ui.picture import PolicyCounts
from webhook.ui.replica_metrics import ReplicaSummary, replica_summary, summary_of

NOW = 1_000_000.0
DAY = 86_400
METRICS = f"""
# TYPE bayplan_policy_answers_total counter
bayplan_policy_answers_total{{policy="tags",answer="refused",mode="enforce"}} 2.0
bayplan_policy_answers_total{{policy="tags",answer="refused",mode="audit"}} 1.0
bayplan_policy_answers_total{{policy="tags",answer="changed",mode="enforce"}} 4.0
# TYPE bayplan_policy_set_info gauge
bayplan_policy_set_info{{revision="abc"}} 1.0
bayplan_policy_set_info{{revision="old"}} 0.0
# TYPE bayplan_reload_failed gauge
bayplan_reload_failed 0.0
# TYPE bayplan_certificate_expiry_timestamp_seconds gauge
bayplan_certificate_expiry_timestamp_seconds{{certificate="serving"}} {NOW + 40 * DAY}
"""


def health(summary: ReplicaSummary) -> dict[str, str]:
    """The state of each line."""
    return {line.name: line.state for line in summary.health}


def test_policies_of_all_replicas_are_added_with_their_revision() -> None:
    """In the words of the page, over the whole cluster."""
    summary = summary_of({"a": METRICS, "b": METRICS}, NOW)
    assert summary.policies == (PolicyCounts("tags", {"": {"fail": 6, "changed": 8}}),)
    assert summary.revisions == ("abc",)
    assert health(summary) == {"reload": "ok", "certificate": "ok"}


@pytest.mark.parametrize(
    ("old", "new", "line", "state", "words"),
    [
        ("failed 0.0", "failed 1.0", "reload", "problem", "not taken up by a"),
        ('"abc"', '"xyz"', "reload", "warning", "2 sets of policies"),
        (str(NOW + 40 * DAY), str(NOW + 3 * DAY), "certificate", "warning", "ends in 3 days"),
        (str(NOW + 40 * DAY), str(NOW - 2 * DAY), "certificate", "problem", "ended 2 days ago"),
    ],
)
def test_what_is_wrong_at_a_single_replica_is_told(
    old: str, new: str, line: str, state: str, words: str
) -> None:
    """In health, though the other is well."""
    assert old in METRICS
    summary = summary_of({"a": METRICS.replace(old, new), "b": METRICS}, NOW)
    (finding,) = [row for row in summary.health if row.name == line]
    assert (finding.state, words in finding.message) == (state, True)


NO_METRICS = [
    "",
    "<html>",
    'x{y="',
    "bayplan_reload_failed nonsense",
    'bayplan_policy_answers_total{policy="qos",answer="allowed"} NaN',
]


@pytest.mark.parametrize("text", NO_METRICS)
def test_what_is_no_metrics_tells_nothing(text: str) -> None:
    """Whoever answers there."""
    assert summary_of({"a": text}, NOW).policies == ()


class Cluster(Api):
    """An API server with two replicas that run and a third that ends; `refused` says no."""

    def __init__(self, refused: tuple[str, ...] = ()) -> None:
        """All may be asked but those."""
        self.refused = refused

    async def list(self, path: str, keep: Any = dict, **query: str) -> tuple[list[Any], str]:
        """The pods of the installation."""
        assert (path, query) == ("/api/v1/namespaces/bay/pods", {"labelSelector": SELECTOR})
        if "list" in self.refused:
            raise ApiError(403, "Forbidden", "no")
        pods: list[Json] = [
            {"metadata": {"name": name}, "status": {"phase": phase}}
            for name, phase in (("a", "Running"), ("b", "Running"), ("c", "Succeeded"))
        ]
        return pods, "1"

    async def get(self, path: str, **query: str) -> Json:
        """The metrics of one."""
        name = path.removeprefix("/api/v1/namespaces/bay/pods/").removesuffix(f":{PORT}/proxy/metrics")
        assert name in ("a", "b")
        if name in self.refused:
            raise ApiError(403, "Forbidden", "no right")
        return {"text": METRICS}


async def test_each_replica_that_runs_is_asked() -> None:
    """Through the API server."""
    assert (await replica_summary(Cluster(), "bay", NOW)).policies[0].namespaces == {
        "": {"fail": 6, "changed": 8}
    }


async def test_a_replica_that_may_not_be_asked_is_told() -> None:
    """Beside what the others say; where pods may not be listed, nothing is."""
    summary = await replica_summary(Cluster(("b",)), "bay", NOW)
    assert summary.policies[0].namespaces == {"": {"fail": 3, "changed": 4}}
    assert health(summary)["metrics"] == "warning"
    assert "1 of 2 replicas" in summary.health[-1].message
    assert await replica_summary(Cluster(("list",)), "bay", NOW) == ReplicaSummary()
