"""What users see of PolicyExceptions: mutate, report, policies, test, metrics; and what none exempts from."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.policies.helpers import CLUSTERS, cluster, policies
from tests.webhook.policy.helpers import Json, check, exemption, loaded, pod, validating
from webhook.admission.decision import decide
from webhook.admission.environment import Environment
from webhook.cli.clusters import why
from webhook.cli.main import main
from webhook.kube.gang_standing import ClusterStanding, GangStanding
from webhook.report.in_cluster import decision_news, merged
from webhook.server.decision_log import answers
from webhook.wire.request import from_object

REFUSES = validating(check("false", message="no such image"))
NEXT_YEAR = f"{datetime.now(UTC) + timedelta(days=365):%Y-%m-%d}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A policy that refuses, an exemption from it for a year, and a pod that it is for."""
    (tmp_path / "policies").mkdir()
    documents = [REFUSES, exemption("validate", NEXT_YEAR)]
    (tmp_path / "policies" / "policy.yaml").write_text(yaml.safe_dump_all(documents))
    manifest = pod()
    manifest["metadata"]["namespace"] = "team-a"
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(manifest))
    return tmp_path


def ended(folder: Path) -> None:
    """The exemption of the folder ended long ago."""
    documents = [REFUSES, exemption("validate", "2020-01-31")]
    (folder / "policies" / "policy.yaml").write_text(yaml.safe_dump_all(documents))


def call(folder: Path, *words: str) -> int:
    """A command on the pod with these policies."""
    return main([*words, "-f", str(folder / "pod.yaml"), "-p", str(folder / "policies")])


def test_mutate_lets_it_in_and_warns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Until it ends: then the policy refuses, and it is told since when."""
    assert call(folder, "mutate") == 0
    assert f"exempt until {NEXT_YEAR} by PolicyException while-it-moves (TICKET-7)" in capsys.readouterr().err
    ended(folder)
    assert call(folder, "mutate") == 1
    stderr = capsys.readouterr().err
    assert "no such image" in stderr
    assert "applies again: PolicyException while-it-moves ended 2020-01-31" in stderr


def test_a_report_skips_what_is_exempt_and_warns_of_what_ended(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the exemption and its end as properties."""
    assert call(folder, "report", "-o", "json") == 0
    results = json.loads(capsys.readouterr().out)["results"]
    (result,) = (row for row in results if row["policy"] == "validate")
    assert (result["result"], result["policy"], result["rule"]) == ("skip", "validate", "exemption")
    assert result["properties"] == {"exception": "while-it-moves", "until": NEXT_YEAR}
    ended(folder)
    assert call(folder, "report", "-o", "json") == 1
    results = json.loads(capsys.readouterr().out)["results"]
    assert [row["result"] for row in results if row.get("rule") == "exemption"] == ["warn"]


def test_list_and_check_tell_of_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whom, until when and why; `check` warns of one that has ended."""
    paths = str(folder / "policies")
    assert main(["policies", "list", paths]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("while-it-moves"))
    assert row.split()[1:5] == ["validate", "namespaces", "team-a", NEXT_YEAR]
    assert main(["policies", "check", paths]) == 0
    shown = capsys.readouterr()
    assert "0 parameter objects, 1 exception: all well" in shown.out
    assert "Warning" not in shown.err
    ended(folder)
    assert main(["policies", "check", paths]) == 0
    assert "while-it-moves ended 2020-01-31, and validate apply again" in capsys.readouterr().err


@pytest.mark.parametrize(("now", "allowed"), [(None, False), ("2026-11-30", True), ("2026-12-01", False)])
def test_a_case_names_its_time(now: str | None, allowed: bool, tmp_path: Path) -> None:
    """Without one no exemption is in force, so that cases do not change from one day to another."""
    case: Json = {"name": "a", "object": pod(), "namespace": "team-a", "expect": {"allowed": allowed}}
    case |= {"now": now} if now else {}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump_all([REFUSES, exemption("validate")]))
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"cases": [case]}))
    assert main(["test", str(tmp_path)]) == 0


def test_a_cluster_s_report_audit_log_and_metrics_tell_of_it() -> None:
    """The Report as a skip, the audit annotation `exempt`, the answer `exempt` of the policy."""
    request = from_object(pod(), namespace="team-a")
    now = datetime(2026, 11, 1, tzinfo=UTC).timestamp()
    decision = decide(request, loaded(REFUSES, exemption("validate")), None, "mutate", Environment(now=now))
    assert decision.response.allowed
    assert "PolicyException while-it-moves" in decision.response.audit_annotations["exempt"]
    assert list(answers(decision)) == [("validate", "exempt")]
    news = decision_news("team-a/Pod/one", "v1", decision, now)
    assert [(row["result"], row["rule"]) for row in news.entries] == [("skip", "exemption")]


@pytest.mark.parametrize("kind", ["Pod", "pod", "pods"])
def test_why_shows_what_the_report_of_its_namespace_tells(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of this workload's exemptions, none of another's; its kind may be written as kubectl takes it."""
    request = from_object(pod(), namespace="team-a")
    now = datetime(2026, 11, 1, tzinfo=UTC).timestamp()
    decision = decide(request, loaded(REFUSES, exemption("validate")), None, "mutate", Environment(now=now))
    news = [decision_news(f"team-a/Pod/{name}", "v1", decision, now) for name in ("one", "other")]
    lookout = PlayedLookout(merged(None, "team-a", news, "r1"))
    seen = ClusterStanding(cluster("nvl72-8racks"), (GangStanding("team-a/Pod/one", "waiting"),), "", (), now)
    monkeypatch.setattr(why, "look", lambda args, show: asyncio.run(show(seen, lookout)))
    main(["why", f"team-a/{kind}/one", "-o", "json"])
    (gang,) = json.loads(capsys.readouterr().out)["items"]
    (row,) = gang["exemptions"]
    assert (row["policy"], row["exception"]) == ("validate", "while-it-moves")
    assert lookout.asked == [("bayplan", "team-a")]


@dataclass
class PlayedLookout:
    """A cluster in which every namespace has this Report, and Kueue knows nothing."""

    stored: Json | None
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def kueue_workloads(self, name: str) -> tuple[()]:
        """None."""
        return ()

    async def report(self, name: str, namespace: str) -> Json | None:
        """The one that is stored."""
        self.asked.append((name, namespace))
        return self.stored


def test_nobody_is_exempt_from_what_the_planner_refuses() -> None:
    """A gang that can never run is refused, though its namespace is exempt from every policy."""
    (file,) = CLUSTERS.parent.glob("job-76-gpus-one-rack.yaml")
    obj = yaml.safe_load(file.read_text())
    by = loaded(REFUSES, exemption("*", namespaces=["*"])).exemptions
    everything = replace(policies(), exemptions=by)
    now = datetime(2026, 11, 1, tzinfo=UTC).timestamp()
    decision = decide(from_object(obj), everything, cluster("nvl72-8racks"), "mutate", Environment(now=now))
    assert not decision.response.allowed
    assert "can never run" in decision.response.message
    assert decision.exempted
