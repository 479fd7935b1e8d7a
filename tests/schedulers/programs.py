"""The programs of KAI and Kueue: built with Go in a checkout of their source that the caller names."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.api import Api, Json
from tests.e2e.binaries import Missing
from tests.e2e.kubectl import Kubectl
from tests.e2e.real_kinds import definition


@dataclass(frozen=True, slots=True)
class Source:
    """A checkout of a scheduler's repository; what it builds lies in `bin/` there."""

    home: Path

    @property
    def version(self) -> str:
        """What git calls the commit; without git, the folder's name."""
        command = ["git", "-C", str(self.home), "describe", "--always", "--tags"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() or self.home.name

    def program(self, name: str) -> Path:
        """`cmd/NAME`, built where `bin/NAME` is not there yet. Raises `Missing`."""
        path = self.home / "bin" / name
        if not os.access(path, os.X_OK):
            command = ["go", "build", "-trimpath", "-o", str(path), f"./cmd/{name}"]
            environment = {**os.environ, "CGO_ENABLED": "0"}
            done = subprocess.run(
                command, cwd=self.home, capture_output=True, text=True, check=False, env=environment
            )
            if done.returncode:
                raise Missing(f"{path} could not be built: {done.stderr.strip()[-2000:]}")
        return path

    def define(self, kubectl: Kubectl, folder: str) -> None:
        """The kinds whose definitions lie in the folder are served. Raises `AssertionError`."""
        for path in sorted((self.home / folder).glob("*.yaml")):
            text = yaml.safe_dump(definition(path.read_bytes()))
            output = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=text)
            assert output.status == 0, output.err
        kubectl.wait_for_kinds()


def call_at(api: Api, configurations: list[Json], port: int, bundle: str) -> None:
    """Store webhook configurations whose Service is this port on loopback."""
    for body in configurations:
        for webhook in body["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
        kind = body["kind"].lower()
        api.create(f"/apis/admissionregistration.k8s.io/v1/{kind}s", body)


def shown_as_running(api: Api, namespace: str, image: str, node: str) -> None:
    """A pod with a scheduler's image, by which its presence and version are known in a cluster; the program
    itself runs beside the cluster, as the API server does."""
    container: dict[str, Any] = {"name": "main", "image": image}
    body = {"metadata": {"name": "scheduler"}, "spec": {"nodeName": node, "containers": [container]}}
    api.create(f"/api/v1/namespaces/{namespace}/pods", body)
