"""Gangs that state their parts before the members come (`bayplan.dev/gang-resources`): unlike members, of any
kinds, end at the same places in whatever order they come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import cluster
from tests.webhook.placement.gang_files import (
    GANG,
    RACKS,
    Member,
    applied,
    group,
    members,
    places,
    planned,
    rehearsed,
    seats,
)
from tests.webhook.workloads import objects as o


def room(listed: list[Member]) -> str:
    """What the gang states of its parts before they come: how many pods, and what each asks for."""
    return "; ".join(
        f"{member.count} {member.role}: {f'{o.GPU}={member.gpus}' if member.gpus else 'cpu=2'}"
        for member in listed
    )


OWN_GANG = "team/Gang/serve"
LEVELS = {"": "", "rack": "rack", "node": "kubernetes.io/hostname"}


@dataclass(frozen=True)
class Parts:
    """A gang that states its parts: by a PodGroup of a version, or by `bayplan.dev/gang` on each member."""

    listed: list[Member]
    scope: str
    version: str
    on_object: bool
    """Whether members that are one object each name the gang there, not on their templates."""

    @property
    def gang(self) -> str:
        """As reservations name it."""
        return GANG if self.version else OWN_GANG

    def files(self) -> tuple[list[Any], list[Any]]:
        """The PodGroup, where there is one, and the members."""
        size, stated = sum(member.count for member in self.listed), room(self.listed)
        if self.version:
            notes = {"bayplan.dev/gang-resources": stated}
            if self.version == "native" and self.scope:
                notes["bayplan.dev/required-level"] = LEVELS[self.scope]
            of = group(size, self.scope, self.version, **notes)
            return [of], [obj for member in self.listed for obj in member.objects()]
        own = {
            "bayplan.dev/gang": "serve",
            "bayplan.dev/gang-size": str(size),
            "bayplan.dev/gang-resources": stated,
        }
        if self.scope:
            own["bayplan.dev/required-level"] = LEVELS[self.scope]
        return [], [obj for member in self.listed for obj in self.objects(member, own)]

    def objects(self, member: Member, own: dict[str, str]) -> list[Any]:
        """What is applied for a member, with these annotations."""
        if not self.on_object or member.kind in ("Pod", "Deployment", "StatefulSet"):
            return member.objects(own)
        (obj,) = member.objects({})
        obj["metadata"]["annotations"] = own
        return [obj]


@settings(max_examples=60)
@given(
    st.builds(
        Parts,
        members.filter(lambda listed: any(member.gpus for member in listed)),
        st.sampled_from(["", "rack", "node"]),
        st.sampled_from(["v2", "v2alpha2", "native", ""]),
        st.booleans(),
    ),
    st.randoms(use_true_random=False),
)
@pytest.mark.hypothesis
def test_a_gang_that_states_its_parts_ends_where_all_files_together_do_in_every_order(
    parts: Parts, random: Any
) -> None:
    """Unlike members of any kinds: `bayplan plan` over all files, a dry run of each, and the webhook in any
    order of apply agree. A member takes the seats of its part, kept from the first one on."""
    groups, objects = parts.files()
    whole = [*groups, *objects]
    snapshot = cluster("r1: a b c d\nr2: e f\nr2: g h used=4")
    (answer,) = planned(snapshot, whole)
    assert answer.gang == parts.gang
    if answer.decision == "admitted":
        for obj in objects:
            assert rehearsed(snapshot, whole, obj) == places(answer.assignments)
        random.shuffle(objects)
        after, decisions = applied(snapshot, [*groups, *objects])
        assert {d.plan.decision for d in decisions if d.plan} == {"admitted"}
        assert seats(after, parts.gang) == places(answer.assignments)


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ("prefill: four GPUs", "is no list of amounts; write for example nvidia.com/gpu=4,cpu=8"),
        ("many prefill: cpu=1", '"many prefill: cpu=1" is no part of a gang; write for example 4 prefill:'),
        ("a: cpu=1; a: cpu=2", '"a: cpu=2" is no part of a gang'),
        (f"{'9' * 5000} prefill: cpu=1", "is no part of a gang; write for example 4 prefill:"),
    ],
)
def test_parts_that_do_not_read_are_told_with_an_example(stated: str, words: str) -> None:
    """The error names the entry."""
    of = group(3, "", **{"bayplan.dev/gang-resources": stated})
    _, (decision,) = applied(cluster(RACKS), [of, *Member("Pod", "prefill", 1, 8).objects()])
    assert words in decision.response.message
