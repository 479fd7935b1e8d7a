"""Credential plugins of kubeconfigs (`users[].user.exec`): programs that print a token or a certificate."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class PluginError(ValueError):
    """The plugin is missing, failed, or printed no credentials."""


async def plugin_credentials(plugin: Mapping[str, Any], folder: Path, cluster: Json) -> Json:
    """Runs a plugin and returns the `status` that it prints, which has a token, or a certificate and its key.

    `folder`: that of the kubeconfig, to which a path of the plugin is relative. `cluster`: what a plugin with
    `provideClusterInfo` learns of the cluster. What the plugin says on standard error reaches the user, such
    as where to log in, and it may ask on the terminal. Raises `PluginError`.
    """
    command = str(plugin["command"])
    if os.sep in command:
        command = str(folder / command)
    asks = plugin.get("interactiveMode") != "Never" and sys.stdin is not None and sys.stdin.isatty()
    spec = {"interactive": asks, **({"cluster": cluster} if plugin.get("provideClusterInfo") else {})}
    request = {"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": spec}
    variables = {variable["name"]: variable["value"] for variable in plugin.get("env") or ()}
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *map(str, plugin.get("args") or ()),
            env={**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(request)},
            stdin=None if asks else DEVNULL,
            stdout=PIPE,
        )
    except FileNotFoundError:
        hint = str(plugin.get("installHint") or "").strip()
        raise PluginError(
            f"there is no credential plugin {command}" + (f". {hint}" if hint else "")
        ) from None
    output, _ = await process.communicate()
    if process.returncode:
        raise PluginError(f"the credential plugin {command} failed with exit status {process.returncode}")
    return _status(command, plugin, output)


def _status(command: str, plugin: Mapping[str, Any], output: bytes) -> Json:
    """Returns the status in the output of a plugin. Raises `PluginError` if it has no credentials."""
    try:
        answer = json.loads(output)
        version, status = answer["apiVersion"], dict(answer["status"])
    except (ValueError, KeyError, TypeError):
        raise PluginError(
            f"the credential plugin {command} printed no ExecCredential with a status"
        ) from None
    if version != plugin["apiVersion"]:
        expected = plugin["apiVersion"]
        raise PluginError(f"the credential plugin {command} prints {version}; the kubeconfig has {expected}")
    if not (status.get("token") or (status.get("clientCertificateData") and status.get("clientKeyData"))):
        raise PluginError(
            f"the credential plugin {command} printed no token, and no certificate with its key"
        )
    return status
