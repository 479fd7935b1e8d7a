"""Where the control plane's programs are: where envtest has them, or `.ci/build-controlplane`."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")


class Missing(Exception):
    """The programs are not there and could not be built; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The folder that holds etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl."""

    home: Path

    def __getitem__(self, name: str) -> str:
        """The path of a program."""
        return str(self.home / name)

    @property
    def minor(self) -> str:
        """The version of Kubernetes, as 1.36."""
        done = subprocess.run(
            [self["kube-apiserver"], "--version"], capture_output=True, text=True, check=True
        )
        return done.stdout.strip().rpartition("v")[2].rpartition(".")[0]


def find() -> Programs:
    """`$KUBEBUILDER_ASSETS`, or what was built; it is built now where it was not. Raises `Missing`."""
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
