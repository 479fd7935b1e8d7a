"""The named functions of the policies over pods, metadata and MIG."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.node.mig import BOARDS
from tests.webhook.workloads.objects import JOB_SET, LWS, POD
from webhook.policy.functions.mig import MOST_SEARCHED, boards, needed, profiles, similar
from webhook.policy.functions.pods import add_annotations, add_labels, asked, count, slices, templates, whole


@pytest.mark.parametrize(
    ("stated", "multiple", "expected"),
    [
        ("1500m", 1, "2"), ("100m", 1, "1"), ("1", 1, "1"), ("2000m", 1, "2000m"), (4, 1, 4), (0.5, 1, "1"),
        ("5", 4, "8"), ("8", 4, "8"), ("1k", 1, "1k"), ("lots", 1, "lots"), ("", 1, ""), (None, 1, None),
    ],
)  # fmt: skip
def test_cpus_are_rounded_up_to_whole_ones(stated: object, multiple: int, expected: object) -> None:
    """What is whole already, or no quantity, comes back as it was written."""
    assert whole(stated, multiple) == expected


@settings(max_examples=50)
@given(st.integers(1, 10**6), st.integers(1, 8))
def test_rounding_twice_is_rounding_once(millis: int, multiple: int) -> None:
    """And never gives less than was asked for, nor a whole step more."""
    once = whole(f"{millis}m", multiple)
    assert whole(once, multiple) == once
    cores = int(str(once).removesuffix("m")) / (1000 if str(once).endswith("m") else 1)
    assert 0 <= cores * 1000 - millis < 1000 * multiple


def container(**resources: object) -> dict[str, object]:
    """A container that states these resources."""
    return {"name": "main", "resources": resources}


def test_gpus_and_slices_are_counted_once_whether_requested_or_limited() -> None:
    """Limits count before requests; other devices count for nothing."""
    with_requests = container(
        requests={"nvidia.com/gpu": 2, "cpu": "4"}, limits={"nvidia.com/gpu": "2", "rdma/ib": 8}
    )
    assert (count(with_requests), slices(with_requests)) == (2, 0)
    assert count(container(requests={"amd.com/gpu": 3})) == 3
    assert slices(container(limits={"nvidia.com/mig-3g.40gb": 2, "nvidia.com/mig-1g.10gb.me": 1})) == 7


@pytest.mark.parametrize(
    "resources", [{}, {"limits": None}, {"limits": {"nvidia.com/gpu": 0}}, {"limits": {"cpu": 1}}]
)
def test_a_pod_without_gpus_asks_for_none(resources: dict[str, object]) -> None:
    """Nothing, null and zero are no GPU."""
    assert not asked({"spec": {"containers": [container(**resources)], "initContainers": None}})
    assert asked({"spec": {"containers": [], "initContainers": [container(limits={"nvidia.com/gpu": 1})]}})


def test_every_template_of_a_workload_is_found() -> None:
    """By the table of kinds: a JobSet's jobs, a LeaderWorkerSet's two, a Pod itself."""
    assert [
        len(templates(workload)) for workload in (POD, JOB_SET, LWS, {"apiVersion": "v1", "kind": "Service"})
    ] == [
        1,
        2,
        2,
        0,
    ]
    assert all(template["kind"] == "Pod" for template in templates(JOB_SET))


def test_annotations_and_labels_only_grow() -> None:
    """What stands there stays; nothing new leaves the metadata as they are."""
    metadata = {"name": "a", "annotations": {"x": "1"}}
    assert add_annotations(metadata, {"x": "2", "y": "3"}) == {
        "name": "a",
        "annotations": {"x": "1", "y": "3"},
    }
    assert add_annotations(metadata, {"x": "2"}) == metadata
    assert add_labels(None, {"x": "1"}) == {"labels": {"x": "1"}}
    assert metadata == {"name": "a", "annotations": {"x": "1"}}, "the input is not changed"


@pytest.mark.parametrize("value", ["text", ["a"], 3])
def test_metadata_of_the_wrong_type_are_an_error_in_words(value: object) -> None:
    """A short one, that names the field."""
    with pytest.raises(ValueError, match="is no mapping"):
        add_labels({"labels": value}, {"a": "b"})


def test_profiles_are_spelled_as_in_resource_names() -> None:
    """`+me` is `.me` there, in both directions."""
    assert "1g.10gb.me" in profiles("NVIDIA-H100-80GB-HBM3")
    assert boards("1g.10gb.me") == ["A100-80", "H100-80"]
    assert profiles("no such board") == []
    assert boards("3g.41gb") == []


def test_the_nearest_profiles_have_as_many_compute_slices() -> None:
    """Then memory decides."""
    assert similar("3g.41gb") == ["3g.20gb", "3g.40gb", "3g.47gb", "3g.48gb"]
    assert len(similar("nonsense")) == 4


@pytest.mark.parametrize(
    ("wanted", "gpus"),
    [
        ({"1g.10gb": 7}, 1),
        ({"1g.10gb": 8}, 2),
        ({"3g.40gb": 2, "1g.10gb": 1}, 2),
        ({"5g.50gb": 1}, -1),
        ({}, 0),
    ],
)
def test_gpus_needed_for_slices(wanted: dict[str, int], gpus: int) -> None:
    """By product or by board; -1 for what the board does not have."""
    assert needed("NVIDIA-H100-80GB-HBM3", wanted) == needed("H100-80", wanted) == gpus
    assert needed("no such board", wanted) == -1


def test_an_absurd_number_of_slices_costs_no_search() -> None:
    """Above the limit the tables' own bound answers, and it is never above the exact number."""
    assert needed("H100-80", {"1g.10gb": 10**12, "2g.20gb": 10**12}) == (3 * 10**12 + 6) // 7
    mixed = {"1g.10gb": MOST_SEARCHED // 2, "2g.20gb": MOST_SEARCHED // 2}
    assert needed("H100-80", mixed) >= 14
    assert BOARDS["H100-80"].compute == 7
