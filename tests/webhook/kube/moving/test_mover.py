"""Moves on an API server in memory, whose controllers the test simulates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from planner.manifests.cluster import read
from tests.webhook.kube.ledger.api_server import ApiServer, Client
from webhook.kube.api.client import ApiError, Json
from webhook.kube.cluster_objects import ClusterObjects
from webhook.kube.moving.mover import Mover, Stopped
from webhook.workloads.keys.annotation_keys import DEFRAGMENTATION

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/team/pods"
AIM = "r1 is free"


def node(name: str) -> Json:
    """A node of 8 GPUs; its rack is the first two letters of its name."""
    labels = {"rack": name[:2], "kubernetes.io/hostname": name}
    status = {"allocatable": {"cpu": "64", "nvidia.com/gpu": "8", "pods": "110"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": status,
    }


def pod(name: str, on: str, owner: str = "web") -> Json:
    """A pod of 2 GPUs that may be restarted, made by a ReplicaSet."""
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": owner,
        "uid": owner,
        "controller": True,
    }
    containers = [{"name": "main", "image": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]
    labels = {"bayplan.dev/restartable": "true"}
    metadata = {"name": name, "namespace": "team", "labels": labels, "ownerReferences": [reference]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": on, "containers": containers},
        "status": {"phase": "Running"},
    }


TOPOLOGY: Json = {
    "apiVersion": "kai.scheduler/v1alpha1",
    "kind": "Topology",
    "metadata": {"name": "hall"},
    "spec": {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]},
}


class Evicting(Client):
    """A user whose evictions are answered: `refused` pods by a budget; the others go to where `goes` says."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self.refused: set[str] = set()
        self.meanwhile: Callable[[str], None] = lambda path: None
        self.goes: dict[str, str] = {}

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        token: str = "",
    ) -> Json:
        if (method, path) == ("GET", NODES):
            nodes = [stored for place, stored in self._server.objects.items() if place.startswith(NODES)]
            return {"items": nodes, "metadata": {}}
        if path.endswith("/eviction"):
            self.calls.append((method, path))
            self.meanwhile(path.removesuffix("/eviction"))
            preconditions = ((body or {}).get("deleteOptions") or {}).get("preconditions") or {}
            return self._evicted(path.removesuffix("/eviction"), preconditions)
        return await super()._call(method, path, query, body, content_type)

    def _evicted(self, path: str, preconditions: Mapping[str, Any]) -> Json:
        name = path.rpartition("/")[2]
        if preconditions["uid"] != self._server.objects[path]["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "the pod of this name is another one")
        if name in self.refused:
            message = "Cannot evict pod as it would violate the pod's disruption budget."
            raise ApiError(429, "TooManyRequests", message)
        owner = self._server.objects[path]["metadata"]["ownerReferences"][0]["name"]
        self._server.call("DELETE", path, None)
        if name in self.goes:
            self._server.call("POST", PODS, pod(f"{name}-again", self.goes[name], owner))
        return {}


@dataclass
class Scene:
    """Two racks of two nodes; a pod on each of r1's."""

    server: ApiServer = field(default_factory=ApiServer)
    lines: list[str] = field(default_factory=list)
    seconds: float = 0.0
    stop: bool = False

    def __post_init__(self) -> None:
        for name in ("r1-a", "r1-b", "r2-a", "r2-b"):
            self.server.call("POST", NODES, node(name))
        self.server.call("POST", PODS, pod("x", "r1-a"))
        self.server.call("POST", PODS, pod("y", "r1-b", "chat"))
        self.client = Evicting(self.server)
        self.client.goes = {"x": "r2-a", "y": "r2-b"}

    @property
    def mover(self) -> Mover:
        """Another administrator each time."""
        return Mover(
            self.client,
            self.look,
            self.news,
            self.tell,
            lambda: self.stop,
            seconds=60,
            clock=lambda: self.seconds,
        )

    async def look(self) -> ClusterObjects:
        """What is stored."""
        objects = [TOPOLOGY, *self.server.objects.values()]
        return ClusterObjects(read([("stored", {"kind": "List", "items": objects})]), objects, 0.0)

    async def news(self) -> None:
        """Time passes."""
        self.seconds += 10

    def tell(self, text: str) -> None:
        """Kept."""
        self.lines.append(text)

    async def apply(self) -> None:
        """Free r1."""
        await self.mover.apply(["r1-a", "r1-b"], ["team/Pod/x", "team/Pod/y"], AIM)

    def cordoned(self) -> dict[str, str]:
        """The nodes that are cordoned, each with the aim of its mark."""
        nodes = [stored for place, stored in self.server.objects.items() if place.startswith(NODES)]
        return {
            stored["metadata"]["name"]: json.loads(stored["metadata"]["annotations"][DEFRAGMENTATION])["aim"]
            for stored in nodes
            if (stored.get("spec") or {}).get("unschedulable")
        }

    def stands(self) -> dict[str, str]:
        """The node of each pod."""
        pods = [stored for place, stored in self.server.objects.items() if place.startswith(PODS)]
        return {stored["metadata"]["name"]: stored["spec"]["nodeName"] for stored in pods}


@pytest.fixture
def scene() -> Scene:
    """All of it."""
    return Scene()


async def test_pod_after_pod_leaves_and_nothing_stays_cordoned(scene: Scene):
    """The nodes are cordoned and marked before the first eviction, and free again after the last."""
    seen: list[dict[str, str]] = []

    async def before(method: str, path: str) -> None:
        if method == "PATCH":
            seen.append(scene.cordoned())

    scene.client.before = before
    await scene.apply()
    assert scene.stands() == {"x-again": "r2-a", "y-again": "r2-b"}
    assert scene.cordoned() == {}
    assert {"r1-a": AIM, "r1-b": AIM} in seen
    evictions = [path for method, path in scene.client.calls if path.endswith("/eviction")]
    assert evictions == [f"{PODS}/x/eviction", f"{PODS}/y/eviction"]
    assert scene.lines[-1] == "done: r1 is free; 2 pods evicted"


async def test_a_budget_that_refuses_before_anything_moved_leaves_nothing_behind(scene: Scene):
    """The first eviction is refused: all is uncordoned."""
    scene.client.refused = {"x"}
    with pytest.raises(Stopped, match="the eviction of team/x was refused: Cannot evict"):
        await scene.apply()
    assert scene.cordoned() == {}
    assert scene.stands() == {"x": "r1-a", "y": "r1-b"}


async def test_an_error_of_the_api_server_before_anything_moved_leaves_nothing_behind(scene: Scene):
    """The first node is cordoned, the API server fails for the second: the first is uncordoned."""

    async def failing(method: str, path: str) -> None:
        if (method, path) == ("PATCH", f"{NODES}/r1-b") and scene.cordoned():
            raise ApiError(500, "InternalError", "etcdserver: request timed out")

    scene.client.before = failing
    with pytest.raises(ApiError, match="timed out"):
        await scene.apply()
    assert scene.cordoned() == {}
    assert scene.stands() == {"x": "r1-a", "y": "r1-b"}


@pytest.mark.parametrize("late", [False, True])
async def test_a_pod_that_was_replaced_under_its_name_is_not_evicted(scene: Scene, late: bool):
    """A StatefulSet has replaced x on another node, before its eviction, or while that is under way."""
    replaced: list[str] = []

    def replace(path: str) -> None:
        if path == f"{PODS}/x" and not replaced:
            replaced.append(path)
            scene.server.call("DELETE", path, None)
            scene.server.call("POST", PODS, pod("x", "r2-a"))

    async def before(method: str, path: str) -> None:
        if method == "GET":
            replace(path)

    if late:
        scene.client.meanwhile = replace
    else:
        scene.client.before = before
    await scene.apply()
    assert replaced
    assert scene.stands() == {"x": "r2-a", "y-again": "r2-b"}


async def test_a_budget_that_refuses_later_leaves_what_another_can_go_on_with(scene: Scene):
    """One has moved; the nodes stay cordoned and marked until somebody resumes, and no second one begins."""
    scene.client.refused = {"y"}
    with pytest.raises(Stopped, match="team/y was refused"):
        await scene.apply()
    assert scene.cordoned() == {"r1-a": AIM, "r1-b": AIM}
    with pytest.raises(Stopped, match="first --resume or --undo it"):
        await scene.apply()
    assert scene.cordoned() == {"r1-a": AIM, "r1-b": AIM}
    scene.client.refused.clear()
    await scene.mover.resume()
    assert scene.stands() == {"x-again": "r2-a", "y-again": "r2-b"}
    assert scene.cordoned() == {}


async def test_undone_the_pods_stay_where_they_are(scene: Scene):
    """And the nodes are as before."""
    scene.client.refused = {"y"}
    with pytest.raises(Stopped):
        await scene.apply()
    await scene.mover.undo()
    assert scene.cordoned() == {}
    assert scene.stands() == {"x-again": "r2-a", "y": "r1-b"}
    with pytest.raises(Stopped, match="nothing to go on with"):
        await scene.mover.resume()


async def test_a_pod_that_does_not_come_back_stops_it(scene: Scene):
    """After the time that each wait may take."""
    del scene.client.goes["x"]
    with pytest.raises(Stopped, match="waited 60 s for team/Pod/x: 0 of 1 pods"):
        await scene.apply()
    assert scene.cordoned() == {"r1-a": AIM, "r1-b": AIM}


async def test_stopped_as_asked_it_ends_the_step_first(scene: Scene):
    """Ctrl-C while the first pod is evicted: it is back on a node, the second is not touched."""
    evicted = scene.client._evicted

    def evicting(path: str, preconditions: Mapping[str, Any]) -> Json:
        scene.stop = True
        return evicted(path, preconditions)

    scene.client._evicted = evicting  # type: ignore[method-assign]
    with pytest.raises(Stopped, match="as asked"):
        await scene.apply()
    assert scene.stands() == {"x-again": "r2-a", "y": "r1-b"}
    assert scene.cordoned() == {"r1-a": AIM, "r1-b": AIM}


async def test_a_node_that_somebody_else_has_cordoned_is_not_taken(scene: Scene):
    """It is not ours to uncordon; the one before it is."""
    scene.server.call("PATCH", f"{NODES}/r1-b", {"spec": {"unschedulable": True}})
    with pytest.raises(Stopped, match="r1-b was cordoned by somebody else"):
        await scene.apply()
    stored = scene.server.objects
    assert "unschedulable" not in stored[f"{NODES}/r1-a"].get("spec", {})
    assert stored[f"{NODES}/r1-b"]["spec"]["unschedulable"] is True


async def test_a_write_of_the_nodes_kubelet_meanwhile_is_no_surprise(scene: Scene):
    """The cordon is tried again on the version that it left."""
    once: list[str] = []

    async def kubelet(method: str, path: str) -> None:
        if method == "PATCH" and not once:
            once.append(path)
            scene.server.call("PATCH", path, {"status": {"phase": "Running"}})

    scene.client.before = kubelet
    await scene.apply()
    assert scene.stands() == {"x-again": "r2-a", "y-again": "r2-b"}
