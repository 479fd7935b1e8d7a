"""What a Deployment tells of the installation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from webhook.cli.common.inputs import shipped
from webhook.files.reader import objects
from webhook.kube.api.client import Api
from webhook.kube.installed import installed_settings, mode_of_arguments

Json = dict[str, Any]


class Installed(Api):
    """An API server with this Deployment, or none."""

    def __init__(self, deployment: Json | None) -> None:
        self._deployment = deployment

    async def find(self, path: str) -> Json | None:
        assert path == "/apis/apps/v1/namespaces/fleet/deployments/bayplan"
        return self._deployment


def deployment(*arguments: str) -> Json:
    """One whose replicas are started with these arguments."""
    container = {"name": "webhook", "command": ["bayplan", "serve"], "args": list(arguments)}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        ([], "enforce"),
        (["--mode=audit"], "audit"),
        (["--mode", "warn"], "warn"),
        (["--mode=audit", "--mode=enforce"], "enforce"),
        (["--mode=enforce", "--mode", "audit"], "audit"),
        (["--mode", "audit", "--mode=enforce"], "enforce"),
        (["--mode=loud"], "enforce"),
    ],
)
def test_the_mode_is_that_of_the_last_argument(words: list[str], mode: str) -> None:
    """As `bayplan serve` reads them; the overlay adds one behind that of the manifests."""
    assert mode_of_arguments(deployment(*words)) == mode


def test_the_argument_of_a_sidecar_is_its_own() -> None:
    """Its position before or after Bayplan's container does not matter."""
    own = deployment("--mode=warn")["spec"]["template"]["spec"]["containers"]
    sidecar = {"name": "proxy", "args": ["--mode=audit"]}
    for containers in ([sidecar, *own], [*own, sidecar]):
        assert mode_of_arguments({"spec": {"template": {"spec": {"containers": containers}}}}) == "warn"


def test_the_deployment_that_ships_audits() -> None:
    """Nothing is changed until an administrator chooses so."""
    (shipped_one,) = objects([str(shipped("manifests") / "40-deployment.yaml")])[-1:]
    assert mode_of_arguments(shipped_one.value) == "audit"


@pytest.mark.parametrize(("stored", "mode"), [(deployment("--mode=audit"), "audit"), (None, "enforce")])
def test_who_looks_from_outside_has_the_mode_of_the_replicas(stored: Json | None, mode: str) -> None:
    """That of the Deployment in the installation's namespace; without one that of `bayplan serve` alone."""
    assert asyncio.run(installed_settings(Installed(stored), "fleet")).mode == mode
