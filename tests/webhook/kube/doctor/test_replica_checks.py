"""What the doctor says of replicas that do not run, and of those that cannot use a change."""

from __future__ import annotations

from typing import Any

from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.doctor.patient import Patient
from webhook.kube.doctor.replica_checks import examine_replicas
from webhook.kube.state.findings import CheckFinding

READY: Json = {"spec": {"replicas": 2}, "status": {"readyReplicas": 2}}
WELL: Json = {"revision": "abc", "problems": []}
PROBLEM = "bayplan-system/ConfigMap/bayplan-parameters: data[mod]: there is no such parameter; is mode meant?"


class Installation(Api):
    """An API server with a Deployment, and replicas that answer at /readyz, each at a port of its own."""

    def __init__(self, deployment: Json | None, *states: Json | ApiError) -> None:
        self.deployment, self.states = deployment, states

    async def find(self, path: str) -> Json | None:
        """The Deployment."""
        assert path == "/apis/apps/v1/namespaces/bay/deployments/bayplan"
        return self.deployment

    async def list(self, path: str, keep: Any = dict, **query: str) -> tuple[list[Any], str]:
        """The pods of the replicas, and one that ends."""
        pods: list[Json] = []
        for number in range(len(self.states) + 1):
            ports = [
                {"name": "https", "containerPort": 1},
                {"name": "probes", "containerPort": 9000 + number},
            ]
            sidecar = {"name": "proxy", "ports": [{"name": "probes", "containerPort": 1}]}
            spec = {"containers": [sidecar, {"name": "webhook", "ports": ports}]}
            pods.append({"metadata": {"name": str(number)}, "spec": spec, "status": {"phase": "Running"}})
        pods[-1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return pods, "1"

    async def get(self, path: str, **query: str) -> Json:
        """What a replica says."""
        number = int(path.removeprefix("/api/v1/namespaces/bay/pods/").partition(":")[0])
        assert path.endswith(f"{number}:{9000 + number}/proxy/readyz")
        state = self.states[number]
        if isinstance(state, ApiError):
            raise state
        return state


async def examined(deployment: Json | None, *states: Json | ApiError) -> list[CheckFinding]:
    """The findings about such an installation."""
    return await examine_replicas(Patient(Installation(deployment, *states), "bay", "bayplan"))


async def test_a_change_that_replicas_cannot_use_is_shown() -> None:
    """As docs/monitoring.md and the alert BayplanReloadFailed say; each problem once."""
    failed = WELL | {"problems": [PROBLEM]}
    _, finding = await examined(READY, failed, failed)
    assert (finding.grade, finding.message) == ("warn", f"2 of 2 replicas: {PROBLEM}")


async def test_replicas_with_the_newest_policies_are_well() -> None:
    """The revision is named; with several, a replica is behind."""
    well = await examined(READY, WELL, WELL)
    assert [(finding.grade, "abc" in finding.message) for finding in well] == [("ok", False), ("ok", True)]
    _, behind = await examined(READY, WELL, WELL | {"revision": "xyz"})
    assert (behind.grade, "abc, xyz" in behind.message) == ("warn", True)


async def test_a_replica_that_cannot_be_asked_is_named() -> None:
    """With what the user lacks, or what stands in the way."""
    refused = ApiError(403, "Forbidden", "no right")
    _, finding = await examined(READY, WELL, refused)
    assert finding.message == "1 of 2 replicas cannot be asked: 1: no right (403 Forbidden)"
    assert finding.mend == "ask as a user who may get pods/proxy"


async def test_a_deployment_whose_pods_are_refused_says_by_what() -> None:
    """There is no pod to describe then."""
    message = 'pods "bayplan-x" is forbidden: failed quota: q: must specify limits.cpu for: webhook'
    condition = {"type": "ReplicaFailure", "status": "True", "message": message}
    (finding,) = await examined({"spec": {"replicas": 3}, "status": {"conditions": [condition]}})
    assert (finding.grade, finding.message) == (
        "fail",
        f"0 of 3 are ready; pods cannot be created: {message}",
    )
    assert finding.mend == "change what refuses them in namespace bay, or the pods' resources"


async def test_replicas_outside_a_deployment_are_asked_too() -> None:
    """The Deployment alone is missed."""
    missed, state = await examined(None, WELL)
    assert (missed.grade, state.grade) == ("warn", "ok")
