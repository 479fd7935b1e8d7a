"""Who refuses the doctor's pod, and whether that is a fault of Bayplan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.doctor.dry_run import examine_dry_run
from webhook.kube.doctor.patient import Patient
from webhook.workloads.keys.annotation_keys import PLACEMENT


class Server(Api):
    """An API server whose nodes offer some resource, and that refuses pods with an error, or plans them."""

    def __init__(self, error: ApiError | None = None, offered: str = "nvidia.com/gpu") -> None:
        self.error, self.offered = error, offered
        self.pods: list[Json] = []

    async def list(self, path: str, keep: Any = dict, **query: str) -> tuple[list[Any], str]:
        """The nodes."""
        return [{"status": None}, {"status": {"allocatable": {"cpu": "4", self.offered: "8"}}}], "1"

    async def find(self, path: str) -> Json | None:
        """Nothing but what the doctor asks of the namespace."""
        return None

    async def create(self, path: str, body: Mapping[str, Any], **query: str) -> Json:
        """The pod as it would be stored."""
        assert (path, query) == ("/api/v1/namespaces/default/pods", {"dryRun": "All"})
        self.pods.append(dict(body))
        if self.error:
            raise self.error
        return {"metadata": {"annotations": {PLACEMENT: "{}"}}}


CALL = 'failed calling webhook "pods.bayplan.dev": failed to call webhook: Post "https://bayplan…": EOF'
OTHER = 'admission webhook "validate.kyverno.svc-fail" denied the request: label team is required'
OURS = 'admission webhook "pods.observed.bayplan.dev" denied the request: no node has nvidia.com/gpu'
QUOTA = 'pods "bayplan-doctor-0" is forbidden: exceeded quota: q'
RIGHTS = (
    'pods is forbidden: User "ann" cannot create resource "pods" in API group "" in the namespace "default"'
)


@pytest.mark.parametrize(
    ("error", "grade", "words", "mend"),
    [
        (
            ApiError(500, "InternalError", CALL),
            "fail",
            "a GPU pod is refused: failed calling",
            "replicas' log",
        ),
        (
            ApiError(422, "Invalid", OURS),
            "warn",
            "Bayplan answers, and refuses a pod with one GPU: no node",
            "",
        ),
        (ApiError(400, "BadRequest", OTHER), "warn", "others than Bayplan refuse the pod", "default"),
        (ApiError(403, "Forbidden", QUOTA), "warn", "others than Bayplan refuse the pod", "default"),
        (
            ApiError(403, "Forbidden", RIGHTS),
            "warn",
            "not measured: pods is forbidden",
            "ask as an administrator",
        ),
    ],
)
async def test_only_a_webhook_that_does_not_answer_is_a_failure(
    error: ApiError, grade: str, words: str, mend: str
) -> None:
    """A quota, another engine or a right decision of Bayplan says nothing against the installation."""
    (finding,) = await examine_dry_run(Patient(Server(error), "bayplan-system", "bayplan"))
    assert (finding.grade, words in finding.message, mend in finding.mend) == (grade, True, True), finding


@pytest.mark.parametrize("offered", ["amd.com/gpu", "habana.ai/gaudi", "nvidia.com/gpu"])
async def test_the_pod_asks_for_gpus_that_the_cluster_has(offered: str) -> None:
    """And passes where the level `restricted` is enforced."""
    server = Server(offered=offered)
    (finding,) = await examine_dry_run(Patient(server, "bayplan-system", "bayplan"))
    assert finding.grade == "ok"
    (container,) = server.pods[0]["spec"]["containers"]
    assert container["resources"] == {"limits": {offered: "1"}}
    assert container["securityContext"]["runAsNonRoot"] is True


async def test_a_user_who_may_not_list_nodes_is_told_of_the_dry_run_all_the_same() -> None:
    """The pod asks for NVIDIA's GPUs then."""

    class Closed(Server):
        async def list(self, path: str, keep: Any = dict, **query: str) -> tuple[list[Any], str]:
            raise ApiError(403, "Forbidden", "nodes is forbidden")

    (finding,) = await examine_dry_run(Patient(Closed(), "bayplan-system", "bayplan"))
    assert finding.grade == "ok"
