"""Builds wheels of Bayplan from a source folder and installs them in an isolated environment."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def install_wheel(source: Path, folder: Path) -> Path:
    """Creates an environment in the folder with the wheel of these sources; `program` starts it. The
    libraries are those of the tests. Their folder is on the path for modules only: as a site folder it would
    also bring in the checkout, which is installed there as editable.
    """
    build = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
    subprocess.run(build, check=True, capture_output=True, cwd=source)
    (wheel,) = folder.glob("*.whl")
    home = folder / "venv"
    venv.create(home, with_pip=False)
    install = ("--python", str(home), "install", "--no-deps", "--no-index", str(wheel))
    subprocess.run([*PIP, *install], check=True, capture_output=True)
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return home


def program(home: Path) -> Path:
    """The command line that starts Bayplan of an environment and no other, whatever PYTHONPATH and the
    working directory are.
    """
    script = home / "bayplan"
    script.write_text(f'#!/bin/sh\nexec "{home}/bin/python" -E -P -m webhook.cli.main "$@"\n')
    script.chmod(0o755)
    return script
