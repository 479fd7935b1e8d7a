"""Messages name pods by what their author wrote: a role, or the container where a kind has no roles."""

from __future__ import annotations

from typing import Any

import pytest

from planner.planning.plan import plan
from tests.builders import racks
from tests.webhook.workloads import objects as o
from webhook.workloads import read

Json = dict[str, Any]
LARGE = {"limits": {"nvidia.com/gpu": 16}}


def container(name: str) -> Json:
    """A container that asks for more than a host has."""
    return {"name": name, "image": "trainer:1", "resources": LARGE}


@pytest.mark.parametrize(
    ("obj", "path", "title"),
    [
        (o.JOB, ("spec", "template", "spec"), "trainer"),
        (o.POD, ("spec",), "trainer"),
        (o.DEPLOYMENT, ("spec", "template", "spec"), "trainer"),
        (o.LWS, ("spec", "leaderWorkerTemplate", "workerTemplate", "spec"), "worker"),
    ],
    ids=["Job", "Pod", "Deployment", "LeaderWorkerSet"],
)
def test_a_refusal_names_the_pods_as_their_author_did(obj: Json, path: tuple[str, ...], title: str) -> None:
    """A Job has no name for its pods, and `main` is not in its manifest; the workers of a set have one."""
    group = read(o.changed(obj, (*path, "containers"), [container("trainer")])).gangs[0]
    assert f"No node takes a pod of {title}: " in plan(racks(1, 2), group).message
