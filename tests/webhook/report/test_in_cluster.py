"""The Report of a namespace: what is told of its objects, merged, bounded, newest first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.admission.updates.test_unchanged import asked, holding, stored
from tests.webhook.calls import EXAMPLES
from tests.webhook.workloads import objects as o
from webhook.admission.configuration.settings import Mode, Settings
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.cli.cluster_files.reading import read_cluster_files
from webhook.cli.common import inputs
from webhook.report.in_cluster import (
    LARGEST_BYTES,
    LARGEST_COUNT,
    REFUSED_SECONDS,
    SETTLED_SECONDS,
    DecisionNews,
    decision_news,
    exemptions_in,
    merged,
    objects_in,
)
from webhook.report.model import EXEMPTION, Result
from webhook.report.openreports import result_entry
from webhook.wire.request import from_object

JOB = "research/Job/train"


def decided(file: str, cluster: str = "superpod-32.yaml", mode: Mode = "enforce") -> Decision:
    """What is decided on an example in a cluster of that mode."""
    policies = inputs.policies(())
    snapshot, around = read_cluster_files([str(EXAMPLES / "clusters" / cluster)])
    (document,) = inputs.manifests([str(EXAMPLES / file)])
    around = replace(around, settings=lambda _: Settings(mode=mode))
    return decide(from_object(document.value), policies, snapshot, "mutate", around)


CHANGED = decided("job-without-resources.yaml")
REFUSED = decided("job-76-gpus-one-rack.yaml", "nvl72-8racks.yaml")


def entry(
    rule: str = "mutation", *, policy: str = "qos", second: int = 1, size: int = 0, **properties: str
) -> dict[str, Any]:
    """One result as a Report has it, of the Job."""
    namespace, kind, name = JOB.split("/")
    return {
        "policy": policy,
        "rule": rule,
        "result": "pass",
        "timestamp": {"seconds": second, "nanos": 0},
        "resources": [{"namespace": namespace, "kind": kind, "name": name}],
        "message": "x" * size,
        "properties": properties,
    }


def of(name: str, *entries: dict[str, Any], **how: bool) -> DecisionNews:
    """News of an object."""
    namespace, kind, own = name.split("/")
    reference = {"namespace": namespace, "kind": kind, "name": own}
    return DecisionNews(name, tuple({**entry, "resources": [reference]} for entry in entries), **how)


def report(*news: DecisionNews, before: dict[str, Any] | None = None) -> dict[str, Any]:
    """The Report with the news in it."""
    document = merged(before, "research", news, "r1")
    assert document is not None, "it tells of something"
    return document


def rules(document: dict[str, Any]) -> list[str]:
    """The rules of its results, in their order."""
    return [row["rule"] for row in document["results"]]


def test_it_answers_what_would_change_and_never_what_is_in_the_object() -> None:
    """Each policy that would write, with the fields; the plan; nothing that only passes, no content."""
    news = decision_news("research/Job/evaluate", "batch/v1", CHANGED, 7.5)
    document = report(news)
    policies = {row["policy"] for row in document["results"]}
    assert {"guaranteed-qos", "kai-queue", "plan"} <= policies
    assert "key-spelling" not in policies, "it only passes"
    assert "busybox" not in str(document)
    assert document["summary"]["pass"] == len(document["results"])
    assert document["metadata"]["name"] == "bayplan"
    assert {(row["timestamp"]["seconds"], row["timestamp"]["nanos"]) for row in document["results"]} == {
        (7, 500_000_000)
    }


def test_where_nothing_is_enforced_it_tells_what_would_be() -> None:
    """In audit a refusal is a warning, and nothing says that the object was refused."""
    decision = decided("job-76-gpus-one-rack.yaml", "nvl72-8racks.yaml", mode="audit")
    (plan,) = (
        entry for entry in decision_news(JOB, "batch/v1", decision, 1.0).entries if entry["policy"] == "plan"
    )
    assert (plan["result"], plan["properties"]["mode"]) == ("warn", "audit")
    assert "refused" not in plan["properties"]


def test_where_bayplan_is_off_it_tells_nothing() -> None:
    """And what was told before is taken back when the object is applied again."""
    news = decision_news(JOB, "batch/v1", decided("job-without-resources.yaml", mode="off"), 1.0)
    assert (news.entries, news.anew) == ((), True)


def test_a_refusal_says_why() -> None:
    """As a failed result of the plan, with the numbers."""
    (failed,) = (
        entry for entry in decision_news(JOB, "batch/v1", REFUSED, 1.0).entries if entry["result"] == "fail"
    )
    assert "72 GPUs" in failed["message"]
    assert failed["properties"]["refused"] == "true"


def test_an_object_that_is_judged_anew_has_no_former_results() -> None:
    """A mended manifest, applied again, leaves nothing of what was wrong with it."""
    before = report(of(JOB, entry("a"), entry("b")), of("research/Job/other", entry("c")))
    after = report(of(JOB, entry("d", second=2)), before=before)
    assert sorted(rules(after)) == ["c", "d"]


def test_an_update_that_asks_for_no_pods_replaces_what_it_tells_again() -> None:
    """The same rule of the same policy; what would change of the templates still holds."""
    before = report(of(JOB, entry("mutation"), entry("label", policy="labels")))
    after = report(of(JOB, entry("label", policy="labels", second=2), anew=False), before=before)
    assert rules(after) == ["label", "mutation"]


def test_pods_speak_for_an_owner_that_nobody_asked() -> None:
    """A Deployment from before Bayplan is told of by its new pods, until it is applied itself."""
    name = "research/Deployment/old"
    pods = decision_news("research/Pod/old-1", "v1", CHANGED, 1.0, pods_of=name)
    assert (pods.object, pods.by_pods, pods.anew) == (name, True, False)
    document = report(pods)
    assert objects_in(document).keys() == {name}
    asked = report(of(name, entry("mutation", second=3)), before=document)
    assert rules(asked) == ["mutation"]
    assert merged(asked, "research", [replace(pods)], "r1") is asked


def test_what_is_gone_is_left_out_and_of_nothing_no_report_is_made() -> None:
    """One that is there stays: without results it says that nothing would change here."""
    after = report(DecisionNews(JOB, gone=True), before=report(of(JOB, entry())))
    assert (after["results"], sum(after["summary"].values())) == ([], 0)
    assert merged(None, "research", [of(JOB)], "r1") is None


def test_nothing_new_is_the_same_report() -> None:
    """So that nothing is written."""
    before = report(of(JOB, entry()))
    assert merged(before, "research", [DecisionNews("research/Job/unknown", gone=True)], "r2") is before


def test_what_others_wrote_to_the_report_stays() -> None:
    """Labels, annotations and the version that the next write must meet."""
    before = report(of(JOB, entry()))
    before["metadata"] |= {"resourceVersion": "17", "labels": {"team": "blue"}}
    after = report(of("research/Job/b", entry(second=2)), before=before)
    assert after["metadata"]["resourceVersion"] == "17"
    assert after["metadata"]["labels"] == {"team": "blue", "app.kubernetes.io/managed-by": "bayplan"}


def test_an_object_may_be_missing_after_a_while_and_a_refused_one_after_a_day() -> None:
    """Watches are a moment behind; what was refused never came to be."""
    document = report(of(JOB, entry(second=100)), of("research/Job/no", entry(second=50, refused="true")))
    assert objects_in(document) == {JOB: 100 + SETTLED_SECONDS, "research/Job/no": 50 + REFUSED_SECONDS}


@pytest.mark.parametrize("size", [0, 400])
def test_the_newest_have_room(size: int) -> None:
    """Ten times as many as a Report takes: the newest are kept, newest first, in few bytes."""
    many = [of(f"research/Job/j-{n}", entry(second=n, size=size)) for n in range(10 * LARGEST_COUNT)]
    document = report(*many[: LARGEST_COUNT // 2])
    for place in range(LARGEST_COUNT // 2, len(many), LARGEST_COUNT):
        document = report(*many[place : place + LARGEST_COUNT], before=document)
    seconds = [row["timestamp"]["seconds"] for row in document["results"]]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] == len(many) - 1
    assert len(seconds) <= LARGEST_COUNT
    assert len(orjson.dumps(document)) <= LARGEST_BYTES + 2000
    assert sum(document["summary"].values()) == len(seconds)


def test_a_long_message_is_cut() -> None:
    """By whom an object is refused at length must not push out all others."""
    plan = REFUSED.plan
    assert plan is not None
    answer = replace(plan.placed[0].answer, message="too large " * 1000)
    long = replace(REFUSED, plan=replace(plan, placed=(replace(plan.placed[0], answer=answer),)))
    assert all(len(entry["message"]) <= 500 for entry in decision_news(JOB, "batch/v1", long, 1.0).entries)


def test_exemptions_are_told_of_the_object_that_has_them() -> None:
    """Not of another object, and no other result of its own; what is no result is passed over."""
    result = Result(JOB, "skip", "policy", "guaranteed-qos", EXEMPTION, "exempt until 2099-12-31")
    exempt = result_entry(replace(result, properties={"exception": "old", "until": "2099-12-31"}), None)
    document = {"results": [entry(), exempt, "no result", {"rule": EXEMPTION}]}
    row = {"policy": "guaranteed-qos", "exception": "old", "until": "2099-12-31"}
    assert exemptions_in(document, JOB) == ({**row, "message": "exempt until 2099-12-31"},)
    assert exemptions_in(document, "research/Job/other") == ()
    assert exemptions_in({}, JOB) == ()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.booleans()), max_size=12))
def test_told_together_or_one_after_the_other_is_the_same(steps: list[tuple[int, int, bool, bool]]) -> None:
    """Whatever is gathered into one write: of each object and rule the last word stands."""
    news = [
        DecisionNews(f"research/Job/{job}", gone=True)
        if gone
        else of(f"research/Job/{job}", entry(str(rule), second=place), anew=anew)
        for place, (job, rule, anew, gone) in enumerate(steps)
    ]
    together = merged(None, "research", news, "r")
    single: dict[str, Any] | None = None
    for notice in news:
        single = merged(single, "research", [notice], "r")
    assert (together or {}).get("results", []) == (single or {}).get("results", [])


def test_the_pod_of_a_gang_of_several_pod_sets_is_told() -> None:
    """It knows the other PodSets only by their places: this was a traceback in the log for each such pod."""
    lws = stored(asked(o.LWS))
    template = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    labels = {"leaderworkerset.sigs.k8s.io/name": "demo", "leaderworkerset.sigs.k8s.io/group-index": "0"}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "demo-0", "uid": "u", "controller": True}
    metadata = {
        "name": "demo-0-1",
        "namespace": "team",
        "labels": labels,
        "ownerReferences": [owner],
        "annotations": template["metadata"]["annotations"],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    decision = asked(pod, on=holding(asked(o.LWS)))
    assert decision.plan is not None
    (gang_plan,) = decision.plan.placed
    assert len({seat.pod_set for seat in gang_plan.answer.assignments}) > len(gang_plan.group.pod_sets)
    news = decision_news("team/Pod/demo-0-1", "v1", decision, 1.0)
    assert [entry["result"] for entry in news.entries if entry["policy"] == "plan"] == ["pass"]
