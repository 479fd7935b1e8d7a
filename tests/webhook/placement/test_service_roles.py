"""Roles of disaggregated inference by name and label, and the places of a service's other roles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.model.podgroup import Assignment
from planner.model.reservation import Reservation
from webhook.placement.service_roles import places_of_service, role_of

HELD = Reservation(
    id="bp-1",
    gang="inf/LeaderWorkerSet/llama-prefill/0",
    topology="fabric",
    level="rack",
    domain=("z1", "r1"),
    mode="domain",
    domains=(("z1", "r1"),),
    nodes=frozenset({"n1"}),
    assignments=(Assignment("worker", "n1", 1),),
    requests=(),
    fingerprint="",
)


@pytest.mark.parametrize(
    ("name", "labels", "role"),
    [
        ("llama-prefill", {}, "prefill"),
        ("decode", {}, "decode"),
        ("llama-router-7d9f-x2", {}, "router"),
        ("prefiller", {}, ""),
        ("llama", {"app.kubernetes.io/component": "decode"}, "decode"),
        ("llama-prefill", {"scheduling.run.ai/topology-role": "decode"}, "decode"),
        ("llama", {"app.kubernetes.io/component": "database"}, ""),
        ("llama", None, ""),
    ],
)
def test_a_role_is_a_label_or_a_word_of_the_name(name: str, labels: object, role: str) -> None:
    """The label counts first; a part of a word is no role."""
    assert role_of(name, labels) == role


@pytest.mark.parametrize(
    ("gang", "fellow"),
    [
        ("inf/LeaderWorkerSet/llama-decode", True),
        ("inf/Pod/llama-decode-7d9f-x2", True),
        ("inf/Pod/llama-prefill-7d9f-x2", True),
        ("inf/LeaderWorkerSet/qwen-decode", False),
        ("inf/LeaderWorkerSet/decode", False),
        ("inf/LeaderWorkerSet/decode-llama", False),
        ("other/LeaderWorkerSet/llama-decode", False),
        ("inf/LeaderWorkerSet/llama", False),
    ],
)
def test_names_that_differ_in_the_role_alone_are_one_service(gang: str, fellow: bool) -> None:
    """In one namespace; what its controller adds behind the role makes no difference."""
    assert bool(places_of_service(gang, [], [HELD])) == fellow


def test_a_name_that_begins_with_the_role_goes_by_the_word_behind_it() -> None:
    """prefill-llama and decode-llama belong together, prefill-qwen does not."""
    held = replace(HELD, gang="inf/LeaderWorkerSet/prefill-llama/0")
    assert places_of_service("inf/LeaderWorkerSet/decode-llama", [], [held])
    assert not places_of_service("inf/LeaderWorkerSet/decode-qwen", [], [held])


def test_a_gang_is_not_beside_itself() -> None:
    """Its replicas are planned together."""
    assert places_of_service("inf/LeaderWorkerSet/llama-prefill", [HELD.gang], [HELD]) == []


def test_a_place_tells_its_role_and_domain() -> None:
    """The policy reads both."""
    assert places_of_service("inf/LeaderWorkerSet/llama-decode", [], [HELD]) == [
        {"gang": HELD.gang, "role": "prefill", "topology": "fabric", "domain": ["z1", "r1"]}
    ]
