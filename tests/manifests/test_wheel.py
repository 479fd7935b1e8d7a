"""The wheel by itself: installed where no checkout is, it has its policies, manifests and chart and runs."""

from __future__ import annotations

import os
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.wheels import install_wheel

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with nothing but the wheel, beside the libraries that it needs."""

    home: Path
    outside: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of Bayplan, called outside the checkout."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.outside), "COLUMNS": "120"}
        return subprocess.run(
            [self.home / "bin" / "bayplan", *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.outside,
            env=environment,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    home = install_wheel(ROOT, folder)
    outside = folder / "outside"
    outside.mkdir()
    return Installed(home, outside)


def test_it_says_its_version(installed: Installed) -> None:
    """That of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert installed.run("--version").stdout == f"bayplan {project['version']}\n"


def test_the_demo_runs(installed: Installed) -> None:
    """Certificates, webhook, examples and map, from what the wheel holds."""
    done = installed.run("demo")
    assert done.returncode == 0, done.stderr
    assert "placed in su-1/rack-3" in done.stdout


def test_the_shipped_policies_pass_their_tests(installed: Installed) -> None:
    """As a user runs them to see that all is there."""
    done = installed.run("test")
    assert done.returncode == 0, done.stdout[-2000:]
    assert ", 0 failed" in done.stdout


def files(folder: Path) -> dict[str, bytes]:
    """What lies below a folder, by path; what Git does not have aside."""
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("name", ["manifests", "overlays", "policies"])
def test_it_unpacks_what_it_holds(installed: Installed, name: str) -> None:
    """Each file of the checkout's, and no other."""
    if not (installed.outside / "bayplan").exists():
        done = installed.run("unpack", "bayplan")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "bayplan/manifests/\nbayplan/overlays/\nbayplan/policies/\n"
    unpacked = files(installed.outside / "bayplan" / name)
    assert unpacked == files(ROOT / name)
    assert name != "manifests" or "chart/Chart.yaml" in unpacked


def test_it_holds_the_live_page(installed: Installed) -> None:
    """Whole: each file of the checkout's."""
    page = next(installed.home.rglob("webhook/ui/static"))
    source = ROOT / "webhook" / "ui" / "static"
    assert {path.name for path in page.iterdir()} == {path.name for path in source.iterdir()}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_it_completes_commands_in_a_shell(installed: Installed, shell: str) -> None:
    """The script names the commands."""
    done = installed.run("completion", shell)
    assert done.returncode == 0, done.stderr
    assert "reservations" in done.stdout
