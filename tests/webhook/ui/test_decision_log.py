"""What Events and Reports of a cluster tell of decisions, as a Reflector hands them over."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.kube.api.client import Event
from webhook.ui.decision_log import KEPT_EVENTS, EventLog, ReportLog
from webhook.ui.picture import DecisionEntry


def nobody() -> None:
    """Nobody waits for news."""


def event(name: str, **fields: Any) -> dict[str, Any]:
    """An Event as webhook/kube/controller/actions/events.py writes it."""
    return {
        "metadata": {"name": name, "namespace": "team"},
        "involvedObject": {"kind": "Job", "namespace": "team", "name": "train"},
        "reason": "Queued",
        "message": "position 1 of 2; waits for: a rack",
        "type": "Normal",
        "lastTimestamp": "2026-01-01T00:00:10Z",
        **fields,
    }


def report(namespace: str, *rows: dict[str, Any], revision: str = "abc") -> dict[str, Any]:
    """A Report as webhook/report/in_cluster.py makes it."""
    metadata = {"name": "bayplan", "namespace": namespace, "annotations": {"bayplan.dev/revision": revision}}
    return {"metadata": metadata, "results": list(rows)}


def row(policy: str, result: str, **fields: Any) -> dict[str, Any]:
    """One result in it."""
    resources = [{"kind": "Job", "namespace": "team", "name": "train"}]
    fixed = {"source": "bayplan/policy", "policy": policy, "result": result, "resources": resources}
    return {**fixed, "timestamp": {"seconds": 5, "nanos": 0}, "message": "why", **fields}


def test_an_event_is_a_decision_with_its_time() -> None:
    """On the workload, with the controller's own token and message."""
    log = EventLog(nobody)
    log.replaced([log.read(event("a"))], 1)
    (entry,) = log.newest()
    assert (entry.name, entry.kind, entry.time) == ("team/Job/train", "Queued", 1767225610.0)
    assert entry.message.startswith("position 1 of 2")


def test_events_come_and_go() -> None:
    """What the API server forgets is told no longer."""
    log = EventLog(nobody)
    log.changed(Event("ADDED", event("a")))
    log.changed(Event("ADDED", event("b", lastTimestamp="2026-01-01T00:00:20Z", type="Warning")))
    assert [(entry.id, entry.warning) for entry in log.newest()] == [
        ("event/team/b", True),
        ("event/team/a", False),
    ]
    log.changed(Event("DELETED", event("a")))
    assert [entry.id for entry in log.newest()] == ["event/team/b"]


@pytest.mark.parametrize(
    "broken", [{}, {"metadata": {}}, event("a", involvedObject=None), event("a", lastTimestamp="x")]
)
def test_what_is_no_such_event_is_left_out(broken: dict[str, Any]) -> None:
    """Anybody may write Events that name us."""
    log = EventLog(nobody)
    log.replaced([log.read(broken)], 1)
    log.changed(Event("ADDED", broken))
    assert log.newest() == []


def test_so_many_events_are_kept_and_no_more() -> None:
    """The newest."""
    log = EventLog(nobody)
    for number in range(KEPT_EVENTS + 5):
        log.changed(Event("ADDED", event(str(number))))
    assert len(log.newest(count=2 * KEPT_EVENTS)) == KEPT_EVENTS
    assert "event/team/0" not in {entry.id for entry in log.newest(count=2 * KEPT_EVENTS)}


def test_an_event_that_was_repeated_outlasts_older_ones() -> None:
    """It came first, and was told again after all others."""
    log = EventLog(nobody)
    for number in range(KEPT_EVENTS):
        log.changed(Event("ADDED", event(str(number))))
    log.changed(Event("MODIFIED", event("0", lastTimestamp="2026-01-01T00:01:00Z")))
    log.changed(Event("ADDED", event("new")))
    kept = {entry.id for entry in log.newest(count=2 * KEPT_EVENTS)}
    assert "event/team/0" in kept
    assert "event/team/1" not in kept


def test_reports_tell_decisions_of_policies_and_the_plan() -> None:
    """With the time of each, and which policy it was."""
    log = ReportLog(nobody)
    plan = row("plan", "warn", source="bayplan/plan", rule="InsufficientRoom", timestamp={"seconds": 7})
    log.replaced([log.read(report("team", row("qos", "fail"), plan))], 1)
    assert log.newest() == [
        DecisionEntry(
            "report/team/Job/train//InsufficientRoom", 7.0, "team/Job/train", "InsufficientRoom", "why", True
        ),
        DecisionEntry("report/team/Job/train/qos/fail", 5.0, "team/Job/train", "fail", "why", True, "qos"),
    ]


def test_reports_count_what_policies_did_by_namespace_and_revision() -> None:
    """What a policy changed is counted as that; the plan is no policy."""
    log = ReportLog(nobody)
    changed = row("qos", "pass", rule="mutation")
    plan = row("plan", "warn", source="bayplan/plan")
    log.replaced([log.read(report("team", row("qos", "fail"), changed, changed, plan))], 1)
    log.changed(Event("ADDED", report("other", row("qos", "fail"), revision="def")))
    (counts,) = log.policies()
    assert counts.namespaces == {"team": {"fail": 1, "changed": 2}, "other": {"fail": 1}}
    assert log.revisions() == ("abc", "def")
    log.changed(Event("DELETED", report("other")))
    assert log.revisions() == ("abc",)


def test_rows_that_are_not_as_we_write_them_are_left_out() -> None:
    """The others of the Report are told."""
    log = ReportLog(nobody)
    no_result = {key: value for key, value in row("qos", "fail", rule="x").items() if key != "result"}
    strange = (row("qos", "fail", resources=[]), row("qos", "fail", timestamp="today"), no_result)
    log.replaced([log.read(report("team", {"result": "fail"}, *strange, row("qos", "fail")))], 1)
    assert len(log.newest()) == 1
