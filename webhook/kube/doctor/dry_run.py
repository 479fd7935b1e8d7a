"""Measures dry runs of a GPU pod, and says who refuses it if it is refused."""

from __future__ import annotations

import re
import statistics
import time

from planner.model.resources import GPU, GPU_RESOURCES
from webhook.admission.modes import mode_in_force
from webhook.kube.api.client import ApiError, Json
from webhook.kube.doctor.patient import Patient, settings_by_namespace
from webhook.kube.state.findings import CheckFinding
from webhook.workloads.keys.annotation_keys import PLACEMENT

PROBES = 7
"""Number of dry runs of a pod: enough for a median, and done in seconds."""


SLOW_SECONDS = 1.0
"""Duration of one admission from which a warning is given; a kubectl user notices a second."""


_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The security context that a namespace with the Pod Security level `restricted` requires."""


_DENIED = re.compile(r'admission webhook "[\w.-]+\.bayplan\.dev" denied the request: ')
_FAILED = re.compile(r'failed calling webhook "[\w.-]+\.bayplan\.dev"')
"""How the API server begins the refusal of a webhook, and the failure of the call, of one of Bayplan's."""


async def examine_dry_run(patient: Patient) -> list[CheckFinding]:
    """Measures dry runs of a GPU pod in namespace `default`, which take the same path as every GPU pod."""
    resource = await _gpu_resource(patient)
    took: list[float] = []
    stored: Json = {}
    for number in range(PROBES):
        started = time.perf_counter()
        try:
            pod = _probe(number, resource)
            stored = await patient.api.create("/api/v1/namespaces/default/pods", pod, dryRun="All")
        except ApiError as error:
            return [_refusal(error)]
        took.append(time.perf_counter() - started)
    middle, worst = statistics.median(took), max(took)
    text = (
        f"a GPU pod is admitted in {1000 * middle:.0f} ms (median of {PROBES}, worst {1000 * worst:.0f} ms)"
    )
    space = await patient.api.find("/api/v1/namespaces/default")
    mode = mode_in_force(space, (await settings_by_namespace(patient))("default")).mode
    if mode != "enforce":
        text = f"{text}; nothing tells whether it was planned, in mode {mode} of namespace default"
    elif PLACEMENT not in ((stored.get("metadata") or {}).get("annotations") or {}):
        mend = "check that the Service reaches a replica, and the namespaces that are left out"
        return [CheckFinding("dry run", "fail", f"{text}, but no webhook planned it", mend)]
    if worst > SLOW_SECONDS:
        return [CheckFinding("dry run", "warn", text, "give the replicas more CPU, or look at /metrics")]
    return [CheckFinding("dry run", "ok", text)]


def _refusal(error: ApiError) -> CheckFinding:
    """Returns the finding for a refused pod. Only a webhook of Bayplan that does not answer is a failure."""
    if _FAILED.search(error.message):
        mend = "see the replicas' log; GPU workloads are refused while this lasts"
        return CheckFinding("dry run", "fail", f"a GPU pod is refused: {error}", mend)
    if denied := _DENIED.search(error.message):
        text = f"Bayplan answers, and refuses a pod with one GPU: {error.message[denied.end() :]}"
        return CheckFinding(
            "dry run", "warn", text, "docs/reference/reasons.md says what to do for each reason"
        )
    if error.status in (401, 403) and "cannot create resource" in error.message:
        return CheckFinding("dry run", "warn", f"not measured: {error}", "ask as an administrator")
    mend = "nothing, unless GPU pods should run in namespace default"
    return CheckFinding(
        "dry run", "warn", f"not measured, as others than Bayplan refuse the pod: {error}", mend
    )


async def _gpu_resource(patient: Patient) -> str:
    """Returns the resource of the GPUs that the cluster's nodes offer; NVIDIA's if they offer none, or if the
    nodes may not be listed.
    """
    try:
        nodes, _ = await patient.api.list("/api/v1/nodes")
    except ApiError:
        return GPU
    offered = {name for node in nodes for name in (node.get("status") or {}).get("allocatable") or {}}
    return next((name for name in GPU_RESOURCES if name in offered), GPU)


def _probe(number: int, resource: str) -> Json:
    container = {
        "name": "probe",
        "image": "none",
        "resources": {"limits": {resource: "1"}},
        "securityContext": _RESTRICTED,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"bayplan-doctor-{number}", "namespace": "default"},
        "spec": {"containers": [container]},
    }
