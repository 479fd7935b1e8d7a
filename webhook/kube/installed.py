"""Reads the settings of an installation from the arguments of its Deployment."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from webhook.admission.configuration.settings import DEFAULT_SETTINGS, MODES, Mode, Settings
from webhook.kube.api.client import Api

Json = Mapping[str, Any]

NAME = "bayplan"
"""The Deployment's name in the manifests and the chart."""


def deployment_path(namespace: str, name: str = NAME) -> str:
    """Returns the API path of the replicas' Deployment."""
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"


async def installed_settings(api: Api, namespace: str, name: str = NAME) -> Settings:
    """Returns the settings in the Deployment's arguments, or the defaults without one. Raises `ApiError`."""
    return Settings(mode=mode_of_arguments(await api.find(deployment_path(namespace, name)) or {}))


def mode_of_arguments(deployment: Json) -> Mode:
    """Returns the last `--mode` in a Deployment's containers, or the default of `bayplan serve`."""
    template = (deployment.get("spec") or {}).get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or []
    words = [word for container in containers for word in _command_line(container)]
    modes = [after for word, after in pairwise([*words, ""]) if word == "--mode"]
    modes += [word.removeprefix("--mode=") for word in words if word.startswith("--mode=")]
    return next((mode for mode in MODES if mode in modes[-1:]), DEFAULT_SETTINGS.mode)


def _command_line(container: Json) -> list[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]
