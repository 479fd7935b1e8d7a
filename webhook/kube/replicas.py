"""Asks the running replicas of an installation, through the API server (`pods/proxy`), on the port of probes.

So programs on a user's machine can ask them too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.installed import CONTAINER

SELECTOR = "app.kubernetes.io/name=bayplan"


PORT = 8081
"""The port of probes and metrics, in plain HTTP, where the pod names none (manifests/40-deployment.yaml)."""


@dataclass(frozen=True, slots=True)
class ReplicaAnswers:
    """What replicas answered, and the errors of those that did not, by the name of the pod."""

    answers: Mapping[str, Json]
    errors: Mapping[str, ApiError]


async def ask_replicas(api: Api, namespace: str, path: str) -> ReplicaAnswers:
    """Reads a path such as `metrics` from all running replicas. Raises `ApiError` if the pods cannot be
    listed.
    """
    pods = f"/api/v1/namespaces/{namespace}/pods"
    listed, _ = await api.list(pods, labelSelector=SELECTOR)
    urls = {
        pod["metadata"]["name"]: f"{pods}/{pod['metadata']['name']}:{_port(pod)}/proxy/{path}"
        for pod in listed
        if _runs(pod)
    }
    results = dict(
        zip(urls, await asyncio.gather(*(_answer(api, url) for url in urls.values())), strict=True)
    )
    return ReplicaAnswers(
        {name: result for name, result in results.items() if not isinstance(result, ApiError)},
        {name: result for name, result in results.items() if isinstance(result, ApiError)},
    )


def _runs(pod: Mapping[str, Any]) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase == "Running" and "deletionTimestamp" not in pod["metadata"]


def _port(pod: Mapping[str, Any]) -> int:
    """Returns the port that the pod names `probes`: the proxy of pods takes numbers only."""
    containers = (pod.get("spec") or {}).get("containers") or []
    ports = [
        port
        for container in containers
        for port in container.get("ports") or []
        if container.get("name") == CONTAINER and port.get("name") == "probes"
    ]
    return int(ports[0]["containerPort"]) if ports else PORT


async def _answer(api: Api, url: str) -> Json | ApiError:
    try:
        return await api.get(url)
    except ApiError as error:
        return error
