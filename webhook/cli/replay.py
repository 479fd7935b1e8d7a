"""`bayplan replay`: recorded admissions decided again under other policies, and what would be different."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.progress import Progress, TextColumn, TimeElapsedColumn

from planner.model.errors import InputError
from webhook.admission.environment import own_parameters
from webhook.cli import inputs
from webhook.cli.parsers import Subparsers, subcommand
from webhook.cli.report import exit_status, status_number
from webhook.files.reader import objects
from webhook.journal.differences import Differences
from webhook.journal.entries import JournalEntry
from webhook.journal.reader import JournalReader
from webhook.journal.replay import Replay
from webhook.report import terminal
from webhook.report.formats import FORMATS

EPILOG = """examples:
  bayplan serve … --journal /var/lib/bayplan/journal               keep what is asked and answered
  bayplan replay journal/ -p new-policies/                          what would these have decided?
  bayplan replay journal/ -p new-policies/ -c cluster.yaml -o markdown > comment.md
  bayplan replay /var/log/kubernetes/audit.log -p new-policies/     from the API server's audit log
  bayplan replay journal/ --parameters parameters.yaml -o json

Admissions are decided again in their order: holds begin, expire and are claimed, deletions and ended gangs
give their place back, and who waits is let in, as in a cluster. CLUSTER is what was there without the gangs
of the journal; without one nothing is placed. Without -p the policies that ship decide.

Environment values and Secrets are in no journal, so a policy that looks at them may decide otherwise. An
audit log (level Request) tells only whether an object was let in.

A file that was cut, or is of another version, is read to where it is good, and that is said.

exit status: 0; 1 where something would newly be refused; 2 bad input; --warn-exit-code for other differences
"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `replay`."""
    parser = subcommand(
        subparsers,
        "replay",
        description="Decide recorded admissions again and report what would be different.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "journal", nargs="+", metavar="JOURNAL", help="journals or audit logs: files or folders"
    )
    inputs.add_cluster(parser, required=False)
    inputs.add_policies(parser)
    parser.add_argument(
        "--parameters", metavar="FILE", help="the ConfigMap bayplan-parameters, in place of the cluster's"
    )
    inputs.add_mode(parser)
    parser.add_argument("-o", "--output", choices=tuple(FORMATS), default="table")
    parser.add_argument("--all", action="store_true", help="show what passes too, in formats for people")
    parser.add_argument(
        "--warn-exit-code",
        type=status_number,
        default=0,
        metavar="N",
        help="exit status where nothing is newly refused, and something else is different",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Decide again and report. Raises `InputError` or `PolicyError` for bad input."""
    policies = inputs.policies(args.policies)
    snapshot, around = inputs.cluster_and_environment(args)
    if args.parameters:
        configured = own_parameters(document.value for document in objects([args.parameters]))
        if configured is None:
            raise InputError(f"{args.parameters}: holds no ConfigMap bayplan-parameters")
        around = replace(around, configured=configured)
    around = inputs.in_force(around, policies)
    reader, differences = JournalReader(args.journal), Differences()
    again = Replay(policies, snapshot, around)
    with _progress(reader.entries()) as entries:
        for entry in entries:
            answer = again.answer(entry)
            if answer is not None:
                differences.add(entry, answer)
    report = replace(differences.report(policies.revision), every=args.all)
    FORMATS[args.output](report, sys.stdout)
    for line in (*reader.problems, *differences.words(), *_queue(again)):
        inputs.note(line)
    if reader.problems and not differences.admissions:
        return 2
    return exit_status(args, report)


def _queue(again: Replay) -> Iterator[str]:
    """How long gangs waited, and who waits still."""
    if again.let_in:
        mean = sum(again.let_in.values()) / len(again.let_in)
        yield f"{len(again.let_in)} gangs waited for a place and got one, after {mean:.0f} s on average"
    if again.waiting:
        yield f"{len(again.waiting)} gangs wait at the end"


@contextmanager
def _progress(entries: Iterable[JournalEntry]) -> Iterator[Iterable[JournalEntry]]:
    """The entries; how many are done is shown on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        yield entries
        return
    columns = (TextColumn("deciding again: {task.completed} admissions"), TimeElapsedColumn())
    with Progress(*columns, console=terminal.console(sys.stderr), transient=True) as bar:
        yield bar.track(entries, total=None)
