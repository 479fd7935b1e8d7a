"""`bayplan report`: what each policy and the plan would do to each object, and why."""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

from planner.model.errors import InputError
from webhook.admission.settings import Settings
from webhook.cli import inputs
from webhook.cli.mutate import MutationResult, decide_all, notes
from webhook.cli.parsers import Subparsers, subcommand
from webhook.files.reader import STDIN, objects_and_errors
from webhook.report.collect import Subject, results, unread
from webhook.report.formats import FORMATS
from webhook.report.model import Report

EPILOG = """examples:
  bayplan report -c cluster.yaml -f manifests/
  bayplan report -c cluster.yaml -f manifests/ -o sarif > bayplan.sarif   for code scanning
  bayplan report -c cluster.yaml -f manifests/ -o markdown                for a pull request
  bayplan report -f manifests/ -o junit --warn-exit-code 1                in CI, warnings count
  bayplan report --kubeconfig ~/.kube/config                              what would change of all that runs
  bayplan report --kubeconfig admin.conf -n research -o html > report.html

With --kubeconfig the workloads of a live cluster are judged, each by itself as if it were applied anew on the
cluster without its own pods. Nothing is changed, and Bayplan need not be installed: the right to list nodes,
pods and workloads is enough; what may not be listed is told. Left out are objects whose owner is asked, those
that have ended, system namespaces and those of mode `off`. What the match conditions of the webhooks leave
out (of those in the cluster, or else of those that ship) counts as unchanged.

A Namespace among the manifests or in CLUSTER says by its label bayplan.dev/mode whether anything is enforced
there, --mode for all others. What would be refused in warn or audit is a warning: nothing is refused there.

A file that cannot be read is a finding of that file, and the rest is reported.

exit status: 0; 1 where something fails; 2 bad input; --warn-exit-code where there are only warnings
"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `report`."""
    parser = subcommand(
        subparsers,
        "report",
        description="Run the policies and the plan over manifests and report on each.",
        epilog=EPILOG,
    )
    inputs.add_manifests(parser, required=False)
    parser.add_argument("--kubeconfig", metavar="FILE", help="report on all that runs in this cluster")
    parser.add_argument("-n", "--namespace", default="", help="with --kubeconfig: of this namespace alone")
    inputs.add_cluster(parser, required=False)
    inputs.add_policies(parser)
    inputs.add_mode(parser)
    parser.add_argument("-o", "--output", choices=tuple(FORMATS), default="table")
    parser.add_argument("--all", action="store_true", help="show what passes too, in formats for people")
    parser.add_argument(
        "--warn-exit-code",
        type=_status,
        default=0,
        metavar="N",
        help="exit status where the worst is a warning",
    )
    parser.set_defaults(run=run)


def _status(text: str) -> int:
    """An exit status. Of a larger number a shell sees the last eight bits: 256 would say that all is well."""
    if not (text.isdecimal() and text.isascii() and int(text) < 256):
        raise argparse.ArgumentTypeError(f"{text!r} is no exit status: 0 to 255")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Decide and report. Raises `InputError` or `PolicyError` for bad input."""
    _check(args)
    policies = inputs.policies(args.policies)
    if args.kubeconfig:
        from webhook.cli.running import report_running  # the client of API servers, which files do not need

        report = asyncio.run(
            report_running(args.kubeconfig, policies, args.namespace, Settings(mode=args.mode))
        )
        FORMATS[args.output](replace(report, every=args.all), sys.stdout)
        return _exit_status(args, report)
    snapshot, around = inputs.cluster_and_environment(args)
    around = inputs.in_force(around, policies)
    documents, errors = objects_and_errors(args.filename)
    if not documents and not errors:
        raise inputs.no_object(args.filename)
    outcomes = decide_all(policies, snapshot and inputs.beside(snapshot, documents), documents, around)
    fates = tuple((outcome.name.split("/")[0], outcome.decision.outcome) for outcome in outcomes)
    all_results = (*unread(errors), *results(_subject(outcome) for outcome in outcomes))
    report = Report(all_results, policies.revision, fates=fates, every=args.all)
    FORMATS[args.output](report, sys.stdout)
    for line in notes(policies, outcomes):
        inputs.note(line)
    unusable = errors or any(outcome.decision.malformed for outcome in outcomes)
    return 2 if unusable else _exit_status(args, report)


def _check(args: argparse.Namespace) -> None:
    """Manifests from files, or workloads that run. Raises `InputError` for both or neither."""
    if bool(args.kubeconfig) == bool(args.filename):
        raise InputError("report on what? Give -f MANIFEST, or --kubeconfig FILE for all that runs there")
    if args.kubeconfig and args.cluster:
        raise InputError("-c is a cluster in files; --kubeconfig reads the cluster itself: leave one out")
    if args.namespace and not args.kubeconfig:
        raise InputError("-n is for --kubeconfig; manifests name their own namespaces")


def _exit_status(args: argparse.Namespace, report: Report) -> int:
    summary = report.summary
    if summary["fail"] or summary["error"]:
        return 1
    status: int = args.warn_exit_code if summary["warn"] else 0
    return status


def _subject(outcome: MutationResult) -> Subject:
    document = outcome.document
    return Subject(
        outcome.name,
        str(document.value["apiVersion"]),
        document.file,
        document.index,
        _text(document.file),
        outcome.decision,
    )


@cache
def _text(file: str) -> str:
    """The file once more, to find lines in it; standard input is gone by then."""
    return "" if file == STDIN else Path(file).read_text(errors="replace")
