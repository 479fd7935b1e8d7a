"""`bayplan unpack`: writes the shipped manifests (with the chart), overlays and policies to a folder."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from planner.model.errors import InputError, Where
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, subcommand

EPILOG = """examples:
  bayplan unpack bayplan                           write them to the folder bayplan
  bayplan unpack . && kubectl apply -k manifests/  write them here, and install Bayplan
  helm install bayplan bayplan/manifests/chart     install with Helm

exit status: 0 done, 2 a folder exists already, or cannot be created
"""

SHIPPED = ("manifests", "overlays", "policies")


def add_parser(subparsers: Subparsers) -> None:
    """Adds `unpack`."""
    parser = subcommand(
        subparsers,
        "unpack",
        description="Write the manifests, chart, overlays and policies of this version to a folder.",
        epilog=EPILOG,
    )
    parser.add_argument("folder", metavar="DIR", help="target folder; it is created if it does not exist")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Copies the `SHIPPED` folders into DIR. If DIR has one of them already, copies none and raises
    `InputError`.
    """
    targets = {name: Path(args.folder, name) for name in SHIPPED}
    for target in targets.values():
        if target.exists():
            message = "is there already, and nothing was written; delete it, or name another folder"
            raise InputError(message, Where(str(target)))
    for name, target in targets.items():
        shutil.copytree(inputs.shipped(name), target, ignore=shutil.ignore_patterns("__pycache__"))
        sys.stdout.write(f"{target}/\n")
    return 0
