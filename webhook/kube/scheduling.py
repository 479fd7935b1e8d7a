"""Reads the objects for `scheduling_findings` from the API server: none of a kind that is not served."""

from __future__ import annotations

from planner.cluster.snapshot import Snapshot
from planner.model.schedulers import KUEUE
from webhook.kube.api.client import Api, Json
from webhook.kube.api.discovery import served_path
from webhook.kube.state.findings import CheckFinding
from webhook.kube.state.scheduling_findings import SchedulingObjects, scheduling_findings
from webhook.workloads.queues import KUEUE_QUEUE

KUEUE_CONFIG = "/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config"
"""The path of Kueue's configuration, if Kueue was installed by its own manifests."""


async def examine_scheduling(api: Api, snapshot: Snapshot) -> list[CheckFinding]:
    """Returns findings about each scheduling system in `snapshot`, and about what keeps its workloads
    waiting.
    """
    pods, _ = await api.list("/api/v1/pods")
    jobs, _ = await api.list("/apis/batch/v1/jobs", labelSelector=KUEUE_QUEUE)
    config = (await api.find(KUEUE_CONFIG) or {}).get("data") or {}
    objects = SchedulingObjects(
        pods,
        await _all(api, "kueue.x-k8s.io", "topologies"),
        await _all(api, "kueue.x-k8s.io", "resourceflavors"),
        await _all(api, "kueue.x-k8s.io", "clusterqueues"),
        await _all(api, "kueue.x-k8s.io", "localqueues"),
        jobs,
        str(config.get("controller_manager_config.yaml") or ""),
        await _all(api, "scheduling.run.ai", "queues"),
        *(await _beside_kueue(api) if KUEUE in snapshot.base.schedulers.shown else ()),
    )
    return scheduling_findings(snapshot.base.schedulers, objects)


async def _beside_kueue(api: Api) -> tuple[list[Json], list[Json]]:
    """Returns the nodes and the Reservations, which are only checked if Kueue is installed."""
    nodes, _ = await api.list("/api/v1/nodes")
    return nodes, await _all(api, "bayplan.dev", "reservations")


async def _all(api: Api, group: str, resource: str) -> list[Json]:
    path = await served_path(api, group, resource)
    return (await api.list(path))[0] if path else []
