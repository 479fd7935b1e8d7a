"""Runs kubectl as a user does: output on each stream, and the exit status."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.processes import wait_until


@dataclass(frozen=True, slots=True)
class Output:
    """The output of one call of kubectl, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any]:
        """The one object that kubectl printed as YAML."""
        body = yaml.safe_load(self.out)
        assert isinstance(body, dict), self
        return body

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The objects that kubectl printed as YAML: one object, a List, or several documents."""
        bodies = [body for body in yaml.safe_load_all(self.out) if body]
        return [item for body in bodies for item in (body["items"] if body["kind"] == "List" else [body])]

    @property
    def warnings(self) -> list[str]:
        """The texts that kubectl printed after `Warning: `."""
        return [
            line.removeprefix("Warning: ") for line in self.err.splitlines() if line.startswith("Warning: ")
        ]


@dataclass(frozen=True, slots=True)
class Kubectl:
    """A kubectl and the kubeconfig that it uses."""

    program: str
    kubeconfig: Path

    def __call__(self, *arguments: str, text: str | None = None) -> Output:
        """Runs kubectl; `text` is its standard input."""
        done = subprocess.run(
            [self.program, f"--kubeconfig={self.kubeconfig}", *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={"PATH": os.environ["PATH"], "HOME": str(self.kubeconfig.parent)},
        )
        return Output(done.returncode, done.stdout, done.stderr)

    def wait_for_kinds(self) -> None:
        """Waits until every defined kind is served. Raises `TimeoutError`. It lists the definitions itself:
        `kubectl wait` would watch them one after the other, and it fails for a definition without a status.
        """
        wait_until(self._established, "the custom kinds to be served", 120)

    def _established(self) -> bool:
        condition = '.status.conditions[?(@.type=="Established")].status'
        rows = f'{{range .items[*]}}{{.metadata.name}} {{{condition}}}{{"\\n"}}{{end}}'
        lines = self("get", "crd", "-o", f"jsonpath={rows}").out.splitlines()
        return bool(lines) and all(line.endswith(" True") for line in lines)
