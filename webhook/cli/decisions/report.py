"""`bayplan report`: reports what each policy and the plan would do to each object, and why."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError
from webhook.admission.configuration.settings import Settings
from webhook.admission.environment import Environment
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, subcommand
from webhook.cli.common.verdict_options import add_verdict_options, print_report
from webhook.cli.decisions.mutate import MutationResult, decide_all, difference, notes, with_manifests
from webhook.files.reader import STDIN, objects_and_errors
from webhook.files.yaml_documents import as_utf8
from webhook.report.collect import Subject, results, unreadable_files
from webhook.report.fabric_map import fabric_maps
from webhook.report.model import EACH, TOGETHER, Report, Result
from webhook.report.not_read import of_unknown_namespaces, of_unread_kinds
from webhook.report.printable import printable
from webhook.report.views import ObjectKey, ObjectView, racks_of
from webhook.workloads.unread_kinds import handling, unread_pods

EPILOG = """examples:
  bayplan report -c cluster.yaml -f manifests/
  bayplan report -c cluster.yaml -f manifests/ --together                 all of them as one apply
  bayplan report -c cluster.yaml -f manifests/ -o sarif > bayplan.sarif   for code scanning
  bayplan report -c cluster.yaml -f manifests/ -o markdown                for a pull request
  bayplan report -f manifests/ -o junit --warn-exit-code 1                let warnings fail CI
  bayplan report --kubeconfig ~/.kube/config                              all workloads of a cluster
  bayplan report --kubeconfig admin.conf -n research -o html > report.html

With --kubeconfig, each workload of a live cluster is evaluated as if it were newly applied to the cluster
without its own pods. Nothing is changed, and Bayplan need not be installed: permission to list nodes, pods
and workloads is enough, and the report names what could not be listed. Objects whose owner is evaluated,
ended objects, system namespaces and namespaces in mode `off` are left out. Objects that the webhooks' match
conditions exclude count as unchanged.

The mode of a namespace is read from the label bayplan.dev/mode of a Namespace in the manifests or in CLUSTER;
--mode is used for all other namespaces. In warn and audit, a refusal is reported as a warning.

A file that cannot be read is reported as a finding, and the other files are still evaluated. Unsupported
kinds that create pods (such as Argo's Workflow) and namespaces that are in no file are also reported.

exit status: 0 done; 1 something fails; 2 bad input; --warn-exit-code if there are only warnings
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `report`."""
    parser = subcommand(
        subparsers,
        "report",
        description="Run policies and planning on manifests or a cluster's workloads, and report.",
        epilog=EPILOG,
    )
    inputs.add_manifests(parser, required=False)
    parser.add_argument("--kubeconfig", metavar="FILE", help="report on all workloads of this cluster")
    parser.add_argument("-n", "--namespace", default="", help="with --kubeconfig: only this namespace")
    inputs.add_cluster(parser, required=False)
    inputs.add_policies(parser)
    inputs.add_mode(parser)
    parser.add_argument(
        "--together",
        action="store_true",
        help="evaluate all manifests as one apply, not each by itself",
    )
    add_verdict_options(parser, "the worst is a warning")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Evaluates the objects of manifests or of a live cluster, and prints the report.

    Returns 2 if a file or an object is malformed, otherwise the exit status of `print_report`. Raises
    `InputError` or `PolicyError` for invalid input.
    """
    _check(args)
    policies = inputs.policies(args.policies)
    if args.kubeconfig:
        from webhook.cli.common.running import (
            report_running,  # imported here, because it imports the API client, which files do not need
        )

        report = asyncio.run(
            report_running(args.kubeconfig, policies, args.namespace, Settings(mode=args.mode))
        )
        return print_report(args, report)
    snapshot, environment = inputs.cluster_and_environment(args)
    environment = inputs.in_force(environment, policies)
    documents, errors = objects_and_errors(args.filename)
    if not documents and not errors:
        raise inputs.no_object(args.filename)
    snapshot = snapshot and inputs.with_claims_of(snapshot, documents)
    outcomes = decide_all(policies, snapshot, documents, environment, together=args.together, replicas=True)
    fates = tuple((_namespace(outcome), outcome.decision.outcome) for outcome in outcomes)
    all_results = (*unreadable_files(errors), *_results(outcomes, with_manifests(environment, documents)))
    judged = (TOGETHER if args.together else EACH) if snapshot else ""
    report = Report(all_results, policies.revision, fates=fates, judged=judged)
    if args.output == "html":
        report = _illustrated(report, snapshot, outcomes, together=args.together)
    status = print_report(args, report)
    for line in notes(policies, outcomes):
        inputs.note(line)
    unusable = errors or any(outcome.decision.malformed for outcome in outcomes)
    return 2 if unusable else status


def _results(outcomes: Sequence[MutationResult], environment: Environment) -> Iterator[Result]:
    """Yields the results for each object, for unsupported kinds, and for unknown namespaces."""
    subjects = [_subject(outcome) for outcome in outcomes]
    yield from results(subjects)
    pods = {
        outcome.name: (path, handling(value))
        for outcome in outcomes
        if (path := unread_pods(value := outcome.document.value))
    }
    yield from of_unread_kinds(subjects, pods)
    modes = {_namespace(outcome): outcome.decision.mode for outcome in outcomes}
    yield from of_unknown_namespaces(subjects, environment.namespaces, modes)


def _namespace(outcome: MutationResult) -> str:
    """Returns the object's namespace; "" if the object is cluster-scoped."""
    return outcome.name.split("/")[0] if outcome.name.count("/") > 1 else ""


def _illustrated(
    report: Report, snapshot: Snapshot | None, outcomes: Sequence[MutationResult], *, together: bool
) -> Report:
    """Returns the report with the data for the HTML page: the maps of the cluster, and the diff and the
    racks of each object.
    """
    planned = [outcome.decision.plan for outcome in outcomes]
    if snapshot is not None and together:
        for reservation in (r for plan in planned if plan for r in plan.reservations):
            snapshot = snapshot.with_reservation(reservation)
    maps = fabric_maps(snapshot) if snapshot else ()
    views = {
        _key(outcome): ObjectView(
            tuple(difference(outcome))[2:], racks_of(maps, plan.reservations) if plan else ()
        )
        for outcome, plan in zip(outcomes, planned, strict=True)
    }
    return replace(report, maps=maps, views=views)


def _key(outcome: MutationResult) -> ObjectKey:
    """Returns the key of an object in `Report.views`, whose parts are printable like those of its results."""
    version = str(outcome.document.value["apiVersion"])
    return printable(outcome.name), printable(version), printable(outcome.document.file)


def _check(args: argparse.Namespace) -> None:
    """Raises `InputError` unless exactly one of `-f` and `--kubeconfig` is given, and for options that
    cannot be used with it.
    """
    if args.kubeconfig and args.filename:
        raise InputError("-f is for manifests and --kubeconfig for all that runs in a cluster: leave one out")
    if not args.kubeconfig and not args.filename:
        raise InputError("report on what? Give -f MANIFEST, or --kubeconfig FILE for all that runs there")
    if args.kubeconfig and args.cluster:
        raise InputError("-c is a cluster in files; --kubeconfig reads the cluster itself: leave one out")
    if args.together and args.kubeconfig:
        raise InputError("--together is for manifests: what runs in a cluster is judged each by itself")
    if args.together and not args.cluster:
        raise InputError("--together needs a cluster (-c): without one nothing is placed")
    if args.namespace and not args.kubeconfig:
        raise InputError("-n is for --kubeconfig; manifests name their own namespaces")


def _subject(outcome: MutationResult) -> Subject:
    document = outcome.document
    return Subject(
        outcome.name,
        str(document.value["apiVersion"]),
        document.file,
        document.index,
        _text(document.file),
        outcome.decision,
        document.item,
    )


@cache
def _text(file: str) -> str:
    """Returns the text of a file, in which lines of fields are searched; "" for standard input and pipes,
    which cannot be read twice.
    """
    if file == STDIN or not Path(file).is_file():
        return ""
    return as_utf8(Path(file).read_bytes()).decode(errors="replace")
