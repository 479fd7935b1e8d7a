"""Reads the settings of an installation, of which only the mode is in its Deployment's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from webhook.admission.configuration.settings import DEFAULT_SETTINGS, MODES, Mode, Settings
from webhook.kube.api.client import Api

Json = Mapping[str, Any]

NAME = "bayplan"
"""The Deployment's name in the manifests and the chart."""

CONTAINER = "webhook"
"""The name of the container that runs `bayplan serve` there; other containers, such as a sidecar, may have
other options of the same names.
"""


def deployment_path(namespace: str, name: str = NAME) -> str:
    """Returns the API path of the replicas' Deployment."""
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"


async def installed_settings(api: Api, namespace: str, name: str = NAME) -> Settings:
    """Returns the settings of the Deployment in the API server, or the defaults without one. Raises
    `ApiError`.
    """
    return settings_of(await api.find(deployment_path(namespace, name)))


def settings_of(deployment: Json | None) -> Settings:
    """Returns the default settings, with the mode in the Deployment's arguments if there is a Deployment."""
    return Settings(mode=mode_of_arguments(deployment or {}))


def mode_of_arguments(deployment: Json) -> Mode:
    """Returns the last `--mode` of Bayplan's container in a Deployment, or the default of `bayplan serve`."""
    chosen = argument(deployment, "--mode")
    return next((mode for mode in MODES if mode == chosen), DEFAULT_SETTINGS.mode)


def argument(deployment: Json, option: str) -> str:
    """Returns the value of the last such option of Bayplan's container in a Deployment; "" without one."""
    template = (deployment.get("spec") or {}).get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or []
    serving: Json = next((container for container in containers if container.get("name") == CONTAINER), {})
    chosen = ""
    for word, after in pairwise([*(serving.get("command") or ()), *(serving.get("args") or ()), ""]):
        name, equals, value = word.partition("=")
        if name == option:
            chosen = value if equals else after
    return chosen
