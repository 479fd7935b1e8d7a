"""Runs Helm with the chart of this checkout, as a user does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from tests.e2e.api import Json
from tests.e2e.binaries import ROOT, Missing
from tests.e2e.kubectl import Output

CHART = ROOT / "manifests" / "chart"
RELEASE = "bayplan"


@dataclass(frozen=True, slots=True)
class Helm:
    """A Helm with its own home folder and, optionally, a kubeconfig."""

    program: str
    home: Path
    kubeconfig: Path | None = None

    def __call__(self, *arguments: str) -> Output:
        """Runs Helm with these arguments."""
        target = [f"--kubeconfig={self.kubeconfig}"] if self.kubeconfig else []
        done = subprocess.run(
            [self.program, *arguments, *target],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home)},
        )
        return Output(done.returncode, done.stdout, done.stderr)

    def must(self, *arguments: str) -> str:
        """Runs Helm and returns its output. Raises `AssertionError` if it fails or prints a warning."""
        output = self(*arguments)
        assert (output.status, output.err) == (0, ""), output.err
        return output.out

    def template(self, settings: Sequence[str] = (), *options: str) -> list[Json]:
        """The objects that the chart renders with these values, without a cluster."""
        sets = [word for setting in settings for word in ("--set-json", setting)]
        text = self.must("template", RELEASE, str(CHART), *sets, *options)
        return [body for body in yaml.safe_load_all(text) if body]


@cache
def helm_program() -> str:
    """The path of Helm, which is built if it is missing. Raises `Missing`."""
    done = subprocess.run([ROOT / ".ci" / "build-helm"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"Helm could not be built: {done.stderr.strip()[-2000:]}")
    return done.stdout.strip()
