"""Recorded admissions decided again: what would be different, and the cluster that they go through."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from tests.builders import cluster
from tests.webhook.journal.traffic import (
    ENFORCED,
    EVERY,
    LABELLED,
    NOTHING,
    TAGGED,
    Json,
    Traffic,
    job,
    pod,
    replayed,
    rules,
)
from tests.webhook.policy.helpers import loaded, mutating, patch
from webhook.admission.configuration.settings import Settings, same_in_all_namespaces
from webhook.journal import differences as compared
from webhook.journal.entries import HEAD, VERSION, Answered, entry_of
from webhook.placement.hold import HOLD_SECONDS
from webhook.placement.hold_limits import HoldLimits

TWO = cluster("r1: a b")
FOUR = cluster("r1: a b\nr2: c d")


def test_under_the_same_policies_nothing_is_different(tmp_path: Path) -> None:
    """Refusals, gangs that hold, wait and are deleted among them."""
    traffic = Traffic(TAGGED, TWO)
    traffic.call(pod(image="busybox:2"), 1)
    traffic.stored(job("first", 2), 2)
    traffic.call(job("second", 2), 3)
    traffic.call(job("first", 2), 50, "validate", "DELETE")
    traffic.call(job("third", 1), 60)
    differences, _, problems = replayed(traffic.file(tmp_path / "j.jsonl"), TAGGED, TWO)
    assert rules(differences) == []
    assert problems == []
    assert differences.was == differences.now == {"refused": 1, "changed": 1, "queued": 2}


def test_a_validated_object_whose_metadata_is_no_map_ends_nothing(tmp_path: Path) -> None:
    """It claims what its recorded call claimed: a damaged line is no reason to stop."""
    traffic = Traffic(NOTHING, TWO)
    traffic.stored(job("first", 2), 2)
    line = orjson.loads(traffic.lines[1])
    line["request"]["object"]["metadata"] = "first"
    traffic.lines[1] = orjson.dumps(line) + b"\n"
    _, again, problems = replayed(traffic.file(tmp_path / "j.jsonl"), NOTHING, TWO)
    assert problems == []
    assert again.snapshot is not None
    assert [(held.gang, held.state) for held in again.snapshot.reservations] == [
        ("research/Job/first", "claimed")
    ]


def test_what_would_be_newly_refused_fails_by_policy_and_namespace(tmp_path: Path) -> None:
    """Once for all admissions of a namespace, counted, with names."""
    traffic = Traffic()
    for number in range(5):
        traffic.call(pod(f"a{number}", image="busybox:2"), number)
    traffic.call(pod("b", image="busybox:2", namespace="shop"), 9)
    traffic.call(pod("c"), 10)
    differences, _, _ = replayed(traffic.file(tmp_path / "j.jsonl"), TAGGED)
    assert rules(differences) == [
        ("fail", "NewlyRefused", "tags", "research/Pod/a0"),
        ("fail", "NewlyRefused", "tags", "shop/Pod/b"),
    ]
    first = differences.report("r").results[0]
    assert "the image has another tag than 1" in first.message
    assert "5 admissions, of research/Pod/a0, research/Pod/a1, research/Pod/a2" in first.message
    assert first.properties["admissions"] == "5"
    assert list(differences.words())[1:] == ["refused: 6 where it was 0", "unchanged: 1 where it was 7"]


def test_what_would_be_newly_admitted_is_told_with_what_it_was_refused_for(tmp_path: Path) -> None:
    """Under the policy that refused it."""
    traffic = Traffic(TAGGED)
    traffic.call(pod(image="busybox:2"), 1)
    differences, _, _ = replayed(traffic.file(tmp_path / "j.jsonl"), NOTHING)
    assert rules(differences) == [("warn", "NewlyAdmitted", "tags", "research/Pod/p")]
    assert "the image has another tag than 1" in differences.report("r").results[0].message


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (NOTHING, LABELLED, 'also sets metadata.labels.team to "a"'),
        (LABELLED, NOTHING, 'no longer sets metadata.labels.team to "a"'),
    ],
)
def test_fields_that_a_policy_newly_changes_are_told(before, after, words, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """And those that it no longer does."""
    traffic = Traffic(before)
    traffic.call(pod(), 1)
    differences, _, _ = replayed(traffic.file(tmp_path / "j.jsonl"), after)
    assert rules(differences) == [("warn", "ChangedFields", "team", "research/Pod/p")]
    assert differences.report("r").results[0].message == words


def test_another_value_of_the_same_field_is_told_once_for_all(tmp_path: Path) -> None:
    """With both values, of the first admission; those of the others may be others."""
    traffic = Traffic(LABELLED)
    for number in range(3):
        traffic.call(pod(f"p{number}"), number)
    expression = '[JSONPatch{op: "add", path: "/metadata/labels", value: {"team": object.metadata.name}}]'
    other = loaded(mutating(patch(expression), name="team", rule=EVERY))
    differences, _, _ = replayed(traffic.file(tmp_path / "j.jsonl"), other)
    (result,) = differences.report("r").results
    assert result.message.startswith('now sets metadata.labels.team to "p0" (was "a") (3 admissions')
    assert result.field == "metadata.labels.team"


def test_a_gang_that_would_be_placed_elsewhere_is_told(tmp_path: Path) -> None:
    """With both places."""
    traffic = Traffic(NOTHING, cluster("r1: a b\nr2: c cordoned\nr2: d cordoned"))
    traffic.stored(job("train", 2), 1)
    other = cluster("r1: a cordoned\nr1: b cordoned\nr2: c d")
    differences, _, _ = replayed(traffic.file(tmp_path / "j.jsonl"), NOTHING, other)
    assert rules(differences) == [("warn", "PlacedElsewhere", "plan", "research/Job/train")]


def test_a_gang_that_would_wait_or_get_a_place_is_told(tmp_path: Path) -> None:
    """In a cluster of another size."""
    traffic = Traffic(NOTHING, FOUR)
    traffic.stored(job("train", 2), 1)
    traffic.stored(job("more", 2), 2)
    path = traffic.file(tmp_path / "j.jsonl")
    assert rules(replayed(path, NOTHING, TWO)[0]) == [("warn", "NewlyQueued", "plan", "research/Job/more")]
    small = Traffic(NOTHING, TWO)
    small.stored(job("train", 2), 1)
    small.call(job("more", 2), 2)
    path = small.file(tmp_path / "k.jsonl")
    assert rules(replayed(path, NOTHING, FOUR)[0]) == [("warn", "NewlyPlaced", "plan", "research/Job/more")]


@pytest.mark.parametrize(("claimed", "after", "outcome"), [
    (False, HOLD_SECONDS + 1, "admitted"), (False, HOLD_SECONDS - 1, "queued"), (True, 1000, "queued"),
])  # fmt: skip
def test_a_hold_expires_unless_it_is_claimed(
    claimed: bool, after: float, outcome: str, tmp_path: Path
) -> None:
    """By the times of the admissions."""
    traffic = Traffic(NOTHING, TWO)
    if claimed:
        traffic.stored(job("first", 2), 0)
    else:
        traffic.call(job("first", 2), 0)
    line = traffic.call(job("second", 2), after)
    assert line["answer"]["gangs"]["research/Job/second"][0] == outcome
    differences, again, _ = replayed(traffic.file(tmp_path / "j.jsonl"), NOTHING, TWO)
    assert rules(differences) == []
    assert ("research/Job/second" in again.waiting) == (outcome == "queued")


def test_a_gang_that_waits_is_let_in_when_a_place_is_given_back(tmp_path: Path) -> None:
    """By a deletion, or where the book told that the reservation ended; who comes later finds it full."""
    traffic = Traffic(NOTHING, TWO)
    traffic.stored(job("first", 2), 0)
    traffic.call(job("second", 2), 10)
    traffic.call(job("first", 2), 100, "validate", "DELETE")
    _, again, _ = replayed(traffic.file(tmp_path / "j.jsonl"), NOTHING, TWO)
    assert again.let_in == {"research/Job/second": 90}
    assert again.waiting == {}
    assert traffic.held() == ["research/Job/second"]
    (reservation,) = again.snapshot.reservations if again.snapshot else ()
    traffic.gone = (reservation.id,)
    traffic.call(job("third", 2), 300)
    _, again, _ = replayed(traffic.file(tmp_path / "j.jsonl"), NOTHING, TWO)
    assert [held.gang for held in again.snapshot.reservations if again.snapshot] == ["research/Job/third"]


def test_who_waits_is_let_in_only_as_far_as_their_namespace_may_hold(tmp_path: Path) -> None:
    """As in a cluster: room that another namespace gives back is not for who waits for their own."""
    limited = replace(
        ENFORCED, settings=same_in_all_namespaces(Settings(mode="enforce", holds=HoldLimits(gpus=16)))
    )
    traffic = Traffic(NOTHING, FOUR, limited)
    traffic.stored(job("first", 2), 0)
    traffic.stored(job("other", 2, "shop"), 1)
    traffic.call(job("second", 2), 10)
    traffic.call(job("other", 2, "shop"), 20, "validate", "DELETE")
    path = traffic.file(tmp_path / "j.jsonl")
    _, again, _ = replayed(path, NOTHING, FOUR, limited)
    assert list(again.waiting) == ["research/Job/second"]
    traffic.call(job("first", 2), 30, "validate", "DELETE")
    _, again, _ = replayed(traffic.file(path), NOTHING, FOUR, limited)
    assert again.let_in == {"research/Job/second": 20}


def test_a_gang_that_is_deleted_while_it_waits_waits_no_more(tmp_path: Path) -> None:
    """It never gets a place."""
    traffic = Traffic(NOTHING, TWO)
    traffic.stored(job("first", 2), 0)
    traffic.call(job("second", 2), 10)
    traffic.call(job("second", 2), 20, "validate", "DELETE")
    traffic.call(job("first", 2), 30, "validate", "DELETE")
    _, again, _ = replayed(traffic.file(tmp_path / "j.jsonl"), NOTHING, TWO)
    assert (again.waiting, again.let_in) == ({}, {})


def test_the_last_pod_of_a_gang_that_can_never_run_is_refused_unless_the_others_were_deleted(
    tmp_path: Path,
) -> None:
    """The first replica had not seen `a` when it admitted `b`; without `a` and `b`, `c` is the first."""
    traffic = Traffic(NOTHING, TWO)
    traffic.call(member("a"), 1)
    traffic.call(member("b"), 2)
    traffic.call(member("a"), 3, "validate", "DELETE")
    traffic.call(member("c"), 4)
    differences, _, _ = replayed(traffic.file(tmp_path / "j.jsonl"), NOTHING, TWO)
    assert rules(differences) == [("fail", "NewlyRefused", "plan", "research/Pod/b")]


def member(name: str) -> Json:
    """A pod of a group of two, which need a node each and must be in the same one."""
    spec = job(name, 1)["spec"]["template"]["spec"]
    body = pod(name, containers=spec["containers"])
    body["metadata"]["labels"] = {"kueue.x-k8s.io/pod-group-name": "pair"}
    body["metadata"]["annotations"] = {
        "kueue.x-k8s.io/pod-group-total-count": "2",
        "kai.scheduler/topology-required-placement": "kubernetes.io/hostname",
    }
    return body


def test_in_a_namespace_that_was_audited_a_new_refusal_is_a_warning(tmp_path: Path) -> None:
    """Nobody is refused there; the mode is the recorded one where the cluster does not tell the Namespace."""
    traffic = Traffic()
    traffic.call(pod(image="busybox:2"), 1)
    document = orjson.loads(traffic.lines[0])
    document["answer"]["mode"] = "audit"
    traffic.lines = [orjson.dumps(document) + b"\n"]
    differences, _, _ = replayed(traffic.file(tmp_path / "j.jsonl"), TAGGED)
    assert rules(differences) == [("warn", "NewlyRefused", "tags", "research/Pod/p")]


def test_ten_thousand_admissions_are_decided_again(tmp_path: Path) -> None:
    """Each counted, in bounded memory: a handful of results, whatever the number."""
    traffic = Traffic(NOTHING, FOUR)
    traffic.call(pod("NAME"), 0)
    traffic.call(pod("NAME", image="busybox:2"), 0)
    traffic.call(pod("NAME", image="busybox:2", namespace="shop"), 0)
    traffic.stored(job("NAME", 2), 0)
    traffic.call(job("NAME", 2), 0, "validate", "DELETE")
    shapes, path = traffic.lines, tmp_path / "j.jsonl"
    with path.open("wb") as journal:
        journal.write(orjson.dumps({HEAD: VERSION}) + b"\n")
        for number in range(2500):
            for place, line in enumerate(shapes):
                renamed = line.replace(b"NAME", b"n%d" % number)
                journal.write(renamed.replace(b'"time":0', b'"time":%d.%d' % (number, place), 1))
    differences, again, problems = replayed(path, TAGGED, FOUR)
    assert problems == []
    assert differences.admissions == 10_000
    assert differences.now["refused"] == 5_000
    assert [(row.rule, row.properties["admissions"]) for row in differences.report("r").results] == [
        ("NewlyRefused", "2500"), ("NewlyRefused", "2500"),
    ]  # fmt: skip
    assert again.snapshot is not None
    assert again.snapshot.reservations == ()


def test_of_an_admission_without_whole_answer_only_the_verdict_is_compared(tmp_path: Path) -> None:
    """An audit log does not tell what policies changed."""
    traffic = Traffic(NOTHING)
    line = traffic.call(pod(), 1)
    assert line["answer"]["changes"] == {}
    entry = entry_of(line)
    entry = replace(entry, answer=replace(entry.answer, whole=False))
    assert list(compared.differences(entry, Answered(True, changes={"team": {"x": "1"}}))) == []
    assert [row.rule for row in compared.differences(entry, Answered(False, "refused", "no", "tags"))] == [
        "NewlyRefused"
    ]
