"""`bayplan why` of a gang that has a place, and pods on no node: the scheduler's words are shown."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from tests.builders import gang, racks
from tests.webhook.kube.controller.actions.test_scheduler_words import Groups
from tests.webhook.kube.worlds import NOW, booked, pod, work, world
from webhook.cli.clusters import why
from webhook.cli.main import main
from webhook.kube.controller.unbound_pods import BINDING_SECONDS
from webhook.kube.gang_standing import ClusterStanding, standings
from webhook.kube.standing import Lookout
from webhook.placement.stamp import PlacementAnnotation

VERDICT = "kube-scheduler says: 0/4 nodes are available: 1 Insufficient cpu"


def shown(
    age: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **fields: object
) -> str:
    """What `why` prints of a gang of two whose first pod was refused at this age, in seconds; `fields`: those
    of this pod.
    """
    group = gang(2, name="default/Job/a", required="rack")
    refused = pod("a-0", "a", gated=False, verdict=VERDICT, created=NOW - age, **fields)
    state = world(booked(racks(2, 2), group), works=(work(group),), pods=(refused,))
    seen = ClusterStanding(state.snapshot, standings(state), "leader", (), NOW)
    lookout = Lookout(SimpleNamespace(api=Groups(None)), "bayplan-system", ())  # type: ignore[arg-type]
    monkeypatch.setattr(why, "look", lambda args, show: asyncio.run(show(seen, lookout)))
    assert main(["why", "default/Job/a"]) == 0
    return capsys.readouterr().out


def test_a_pod_that_its_scheduler_leaves_on_no_node_is_shown_with_the_scheduler_s_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For example, a pod of a namespace that is not enforced has taken its seat."""
    text = shown(BINDING_SECONDS, monkeypatch, capsys)
    assert f"  1 pod is on no node yet; {VERDICT}\n" in text


def test_a_pod_that_came_a_moment_ago_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "on no node" not in shown(BINDING_SECONDS - 1, monkeypatch, capsys)


def test_a_pod_that_is_pinned_to_a_former_place_of_its_gang_is_to_be_deleted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its gang was moved to r1, and the affinity of a pod without gates cannot be changed."""
    former = PlacementAnnotation("admitted", domains=(("r2",),))
    text = shown(BINDING_SECONDS, monkeypatch, capsys, notes=(former,))
    assert (
        "Pinned to a former place of the gang: a-0; delete it, and it is created again for the new one"
        in text
    )
