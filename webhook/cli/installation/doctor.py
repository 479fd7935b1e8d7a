"""`bayplan doctor`: checks an installation in a cluster, and says what to fix."""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import asdict

from rich.text import Text

from webhook.admission.environment import NAMESPACE
from webhook.cli.common.parsers import Subparsers, subcommand
from webhook.cli.common.standing_words import quiet
from webhook.kube.api.kubeconfig import connect
from webhook.kube.doctor.checks import examine
from webhook.kube.doctor.patient import Patient
from webhook.kube.state.findings import CheckFinding
from webhook.report import terminal
from webhook.report.documents import indented

EPILOG = """examples:
  bayplan doctor
  bayplan doctor --kubeconfig admin.conf -o json

It checks the CRDs, the webhook configurations and their CA, whether they match the mode of each namespace,
the certificate, the replicas and their leader, changes that they cannot use, RBAC, the topology labels of
nodes, other schedulers, and the time that the webhook adds to a dry run. It changes nothing. What the
replicas say of themselves is read through the API server, which needs `get` on `pods/proxy`.

exit status: 0 nothing failed, 1 a check failed, 2 bad input or usage
"""


_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def add_parser(subparsers: Subparsers) -> None:
    """Adds `doctor`."""
    parser = subcommand(
        subparsers,
        "doctor",
        description="Check Bayplan's installation in a cluster, and say what to fix.",
        epilog=EPILOG,
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")
    parser.add_argument(
        "--namespace", default=NAMESPACE, help="namespace of the installation (default: %(default)s)"
    )
    parser.add_argument("--name", default="bayplan", help="name of its objects (default: %(default)s)")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the checks, and prints a line for each. Returns 1 if a check failed. Raises `InputError` for an
    invalid kubeconfig.
    """
    quiet()
    findings = asyncio.run(_examine(args))
    if args.output == "json":
        sys.stdout.write(indented([asdict(finding) for finding in findings]))
    else:
        terminal.console().print(terminal.table(("", "CHECK", "FOUND", "MEND"), map(_row, findings)))
    return 1 if any(finding.grade == "fail" for finding in findings) else 0


async def _examine(args: argparse.Namespace) -> list[CheckFinding]:
    api = await connect(args.kubeconfig)
    try:
        return await examine(Patient(api, args.namespace, args.name))
    finally:
        await api.close()


def _row(finding: CheckFinding) -> tuple[Text | str, ...]:
    return (Text(finding.grade, _STYLES[finding.grade]), finding.subject, finding.message, finding.mend)
