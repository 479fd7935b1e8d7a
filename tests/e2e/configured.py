"""Installs the webhook configurations of 70-webhooks.yaml with a loopback URL in place of the Service.

They match overlays/enforce: namespaces without the label bayplan.dev/mode are enforced, unless `observed`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.api import Api, ApiError, Json
from tests.e2e.binaries import ROOT
from tests.e2e.processes import wait_until

WEBHOOKS = ROOT / "manifests" / "70-webhooks.yaml"
ENFORCED = ROOT / "manifests" / "components" / "enforce" / "webhooks.yaml"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
PROBE: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe", "namespace": "default", "annotations": {"bayplan.dev/skip": "true"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}

Logged = Callable[[], list[dict[str, Any]]]
"""What those who are called have logged so far, as JSON."""


def configure(
    api: Api, paths: list[str], port: int, certs: Path | None = None, *, observed: bool = False
) -> None:
    """Makes the API server call that port, with the CA in the folder or without a CA. Adds the created
    objects to `paths`.
    """
    patches = {} if observed else {patch["kind"]: patch["webhooks"] for patch in _documents(ENFORCED)}
    trust = {"caBundle": base64.b64encode((certs / "ca-bundle.crt").read_bytes()).decode()} if certs else {}
    for body in _documents(WEBHOOKS):
        rows = {row["name"]: row for row in patches.get(body["kind"], ())}
        for webhook in body["webhooks"]:
            webhook |= rows.get(webhook["name"], {})
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", **trust}
        where = f"{CONFIGURATIONS}/{body['kind'].lower()}s"
        api.create(where, body)
        paths.append(f"{where}/{body['metadata']['name']}")


def _documents(path: Path) -> list[Json]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def wait_for_calls(api: Api, logged: Logged) -> None:
    """Waits until the API server calls the webhook in both phases."""
    wait_until(lambda: _phases(api, logged) == {"mutate", "validate"}, "the API server to call the webhook")


def unconfigure(api: Api, paths: list[str], logged: Logged) -> None:
    """Deletes the configurations; the API server calls no webhook afterwards."""
    while paths:
        api.delete(paths.pop())
    wait_until(lambda: not _phases(api, logged), "the API server to leave the webhook alone")


def _phases(api: Api, logged: Logged) -> set[str]:
    """The phases in which a dry run of a pod was decided, or the error of that dry run."""
    before = len(logged())
    try:
        api.create("/api/v1/namespaces/default/pods", PROBE, dryRun="All")
    except ApiError as error:
        return {str(error)}
    return {line["phase"] for line in logged()[before:] if line.get("event") == "decision"}
