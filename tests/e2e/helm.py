"""Helm as a person runs it, on this checkout's chart."""

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
    """A Helm with a home of its own, and the kubeconfig that it uses, if any."""

    program: str
    home: Path
    kubeconfig: Path | None = None

    def __call__(self, *arguments: str) -> Output:
        """Run it."""
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
        """What it printed. Raises `AssertionError` where it failed or warned."""
        output = self(*arguments)
        assert (output.status, output.err) == (0, ""), output.err
        return output.out

    def template(self, settings: Sequence[str] = (), *options: str) -> list[Json]:
        """The objects that the chart makes with these values, without a cluster."""
        sets = [word for setting in settings for word in ("--set-json", setting)]
        text = self.must("template", RELEASE, str(CHART), *sets, *options)
        return [body for body in yaml.safe_load_all(text) if body]


@cache
def helm_program() -> str:
    """Where Helm is; it is built now where it was not. Raises `Missing`."""
    done = subprocess.run([ROOT / ".ci" / "build-helm"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"Helm could not be built: {done.stderr.strip()[-2000:]}")
    return done.stdout.strip()
