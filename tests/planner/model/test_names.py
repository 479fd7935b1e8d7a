"""Names of gangs: which are replicas of an object, and how several are written."""

import pytest

from planner.model.names import first_replicas, gangs_listed, object_of, part_listed

SERVE = "research/LeaderWorkerSet/serve"


@pytest.mark.parametrize(
    ("gang", "owner"),
    [
        (f"{SERVE}/3", SERVE),
        (SERVE, ""),
        ("research/Job/3", ""),
        (f"{SERVE}/main", ""),
        (f"{SERVE}/3 1", ""),
    ],
)
def test_a_gang_is_a_replica_if_its_name_ends_in_an_index(gang, owner):
    """Anything else is an object of its own."""
    assert object_of(gang) == owner


@pytest.mark.parametrize(
    ("gangs", "words"),
    [
        ([f"{SERVE}/{n}" for n in (8, 9, 10, 11)], f"{SERVE}/8–11"),
        ([f"{SERVE}/{n}" for n in (0, 2, 3)], f"{SERVE}/0, {SERVE}/2–3"),
        ([f"{SERVE}/0", "a/JobSet/b/1"], f"{SERVE}/0, a/JobSet/b/1"),
        (["a/Job/1", "a/Job/2"], "a/Job/1, a/Job/2"),
    ],
)
def test_successive_replicas_of_one_object_are_a_range(gangs, words):
    """Others are named one by one."""
    assert gangs_listed(gangs) == words


@pytest.mark.parametrize(
    ("gangs", "total", "words"),
    [
        ([f"{SERVE}/1", f"{SERVE}/2"], 3, f"{SERVE}/1–2 (2 of 3 replicas)"),
        ([f"{SERVE}/0", f"{SERVE}/1"], 2, f"{SERVE}/0–1 (all 2 replicas)"),
        (["a/JobSet/b/0"], 2, "a/JobSet/b/0 (1 of 2 Jobs)"),
        (["a/Job/b"], 1, "a/Job/b"),
    ],
)
def test_a_part_of_the_replicas_is_counted(gangs, total, words):
    """The gangs of a JobSet are its Jobs; a single gang is not counted."""
    assert part_listed(gangs, total) == words


@pytest.mark.parametrize(
    ("total", "words"), [(2000, "the first 1000 of 2000 replicas"), (1000, "1000 replicas")]
)
def test_the_first_replicas_are_counted_among_all(total, words):
    """All of them need no second number."""
    assert first_replicas(SERVE, 1000, total) == words
