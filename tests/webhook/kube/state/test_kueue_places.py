"""Kueue's assignments in both formats, and values that are no assignment."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import Where
from planner.model.topology import HOSTNAME
from tests.builders import amounts
from tests.webhook.kube.kueue_worlds import domains, slices, workload
from webhook.kube.state import kueue_places
from webhook.kube.state.kueue_places import AssignedDomain, kueue_place

Json = dict[str, Any]
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]", fullmatch=True)


def domains_of(assignment: Json) -> tuple[AssignedDomain, ...]:
    """The domains that are read of an assignment."""
    place = kueue_place(workload("w", assignment), Where())
    assert place is not None
    return place.pod_sets[0].domains


@given(st.dictionaries(NAMES, st.integers(1, 100), min_size=1, max_size=20))
def test_both_forms_say_the_same(counts: dict[str, int]) -> None:
    """A list of domains, and slices with common prefixes."""
    expected = tuple(AssignedDomain(((HOSTNAME, name),), count) for name, count in counts.items())
    assert domains_of(domains(HOSTNAME, counts)) == expected
    assert domains_of(slices(HOSTNAME, counts)) == expected


def test_slices_have_values_and_counts_that_are_the_same_for_all_of_their_domains() -> None:
    """Two levels, of which one is universal; a suffix; a count for each, and another slice beside it."""
    assignment = {
        "levels": ["block", "rack"],
        "slices": [
            {
                "domainCount": 2,
                "valuesPerLevel": [
                    {"universal": "b1"},
                    {"individual": {"prefix": "r-", "suffix": "-x", "roots": ["1", "2"]}},
                ],
                "podCounts": {"universal": 3},
            },
            {
                "domainCount": 1,
                "valuesPerLevel": [{"universal": "b2"}, {"individual": {"roots": ["r"]}}],
                "podCounts": {"individual": [5]},
            },
        ],
    }
    read = [(dict(domain.labels), domain.count) for domain in domains_of(assignment)]
    assert read == [
        ({"block": "b1", "rack": "r-1-x"}, 3),
        ({"block": "b1", "rack": "r-2-x"}, 3),
        ({"block": "b2", "rack": "r"}, 5),
    ]


def test_what_a_workloads_pods_ask_for_is_read_of_its_template() -> None:
    """With the pods that have succeeded, and whose it is."""
    ended = {"reclaimablePods": [{"name": "main", "count": 1}]}
    stored = workload("w", slices(HOSTNAME, {"n1": 1, "n2": 1}), owner="a", status=ended)
    place = kueue_place(stored, Where())
    assert place is not None
    (part,) = place.pod_sets
    assert (part.requests, part.ended) == (amounts(gpu=8) | {"pods": 1}, 1)
    assert [owner.key for owner in place.owners] == ["default/Job/a"]
    assert place.gang == "default/KueueWorkload/w"


FINISHED = {"conditions": [{"type": "Finished", "status": "True"}]}


@pytest.mark.parametrize(
    "stored",
    [
        workload("w", None),
        workload("w", None, status={"admission": {"podSetAssignments": [{"name": "main", "count": 2}]}}),
        workload("w", slices(HOSTNAME, {"n1": 2}), status=FINISHED),
        workload("w", slices(HOSTNAME, {"n1": 1}), gpu=0, pods=1),
    ],
    ids=["not admitted", "a flavor without a topology", "finished", "a lone pod without devices"],
)
def test_what_has_no_place_is_not_kept(stored: Json) -> None:
    """The watch stores nothing of a Workload without an assignment."""
    assert kueue_place(stored, Where()) is None


def test_a_count_of_billions_is_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes may say it; more domains than Kueue writes are a fault, in either form."""
    part = {"domainCount": 10**9, "valuesPerLevel": [{"universal": "n"}], "podCounts": {"universal": 1}}
    with pytest.raises(ValueError, match="more than 100000 domains"):
        domains_of({"levels": [HOSTNAME], "slices": [part]})
    monkeypatch.setattr(kueue_places, "MOST_DOMAINS", 2)
    with pytest.raises(ValueError, match="more than 2 domains"):
        domains_of(domains(HOSTNAME, {"a": 1, "b": 1, "c": 1}))


@pytest.mark.parametrize("counts", [{"individual": [1]}, {"individual": [1, 1, 1]}])
def test_a_slice_whose_parts_do_not_match_is_a_fault(counts: Json) -> None:
    """The store omits it and reports the reason."""
    values = {"individual": {"roots": ["1", "2"]}}
    part = {"domainCount": 2, "valuesPerLevel": [values], "podCounts": counts}
    with pytest.raises(ValueError, match="zip"):
        domains_of({"levels": [HOSTNAME], "slices": [part]})


@pytest.mark.parametrize("says", ["True", "False"])
def test_a_group_that_waits_for_other_pods_is_known(says: str) -> None:
    """By the condition that Kueue v0.19.2 writes."""
    conditions = [{"type": "WaitingForReplacementPods", "status": says, "reason": "PodsFailed"}]
    stored = workload("w", domains(HOSTNAME, {"a": 2}))
    stored["status"]["conditions"] = conditions
    place = kueue_place(stored, Where())
    assert place is not None
    assert place.waits_for_pods is (says == "True")
