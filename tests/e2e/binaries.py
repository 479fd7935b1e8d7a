"""Finds the programs of the control plane: envtest's, or those built by `.ci/build-controlplane`."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")


class Missing(Exception):
    """The programs are missing and could not be built; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The folder with etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl."""

    home: Path

    def __getitem__(self, name: str) -> str:
        """The path of a program."""
        return str(self.home / name)

    @property
    def minor(self) -> str:
        """The version of Kubernetes, for example 1.36."""
        done = subprocess.run(
            [self["kube-apiserver"], "--version"], capture_output=True, text=True, check=True
        )
        return done.stdout.strip().rpartition("v")[2].rpartition(".")[0]


def find() -> Programs:
    """Returns `$KUBEBUILDER_ASSETS` or the folder of the built programs, and builds them if they are missing.
    Raises `Missing`.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    home = Path(assets) if assets else _built()
    absent = [name for name in PROGRAMS if not os.access(home / name, os.X_OK)]
    if absent:
        text = f"{home} has no {', '.join(absent)}; unset KUBEBUILDER_ASSETS to have them built from source"
        raise Missing(text)
    return Programs(home)


def _built() -> Path:
    done = subprocess.run([ROOT / ".ci" / "build-controlplane"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"the control plane could not be built: {done.stderr.strip()[-2000:]}")
    return Path(done.stdout.strip())
