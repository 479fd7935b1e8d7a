"""`bayplan replay`: decides recorded admissions again with other policies, and reports the differences."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from rich.progress import Progress, TextColumn, TimeElapsedColumn

from planner.model.errors import InputError
from planner.model.words import counted
from planner.simulation.course import Course
from planner.simulation.figures import figures
from webhook.admission.environment import own_parameters
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, subcommand
from webhook.cli.common.plotting import plot_file, write_plot
from webhook.cli.common.verdict_options import add_verdict_options, print_report
from webhook.files.reader import objects
from webhook.journal.courses import ClusterCourse, Recorded, gpu_racks
from webhook.journal.differences import Differences
from webhook.journal.entries import JournalEntry
from webhook.journal.reader import JournalReader
from webhook.journal.replay import Replay
from webhook.journal.run_lengths import RunLengths, run_lengths
from webhook.report import terminal
from webhook.report.figures.plot import PlotScene

EPILOG = """examples:
  bayplan serve … --journal /var/lib/bayplan/journal               record requests and answers
  bayplan replay journal/ -p new-policies/                          what would these have decided?
  bayplan replay journal/ -p new-policies/ -c cluster.yaml -o markdown > comment.md
  bayplan replay /var/log/kubernetes/audit.log -p new-policies/     from the API server's audit log
  bayplan replay journal/ --parameters parameters.yaml -o json
  bayplan replay journal/ -p new-policies/ -c cluster.yaml --plot week.html    utilisation and queue, both

Requests are evaluated in their recorded order. As in a cluster, holds expire or are claimed, ended and
deleted gangs release their place, and waiting gangs are admitted. CLUSTER is the cluster without the gangs of
the journal; without it, nothing is placed. Without -p, the policies that ship with Bayplan are used.

Journals contain no environment values and no Secrets, so a policy that reads them may decide differently. An
audit log (level Request) only shows whether an object was admitted.

With a cluster, the report includes the figures of `bayplan simulate` for the recorded and the replayed
course: GPUs running, reserved and idle, untouched racks, waiting gangs and their waiting times. --plot draws
them over time.

A file that is truncated, or written by another version, is read as far as possible, and the report says so.

exit status: 0 done; 1 something would newly be refused; 2 bad input, or no request in it; --warn-exit-code
for other differences
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `replay`."""
    parser = subcommand(
        subparsers,
        "replay",
        description="Evaluate recorded requests again, and report what would be different.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "journal", nargs="+", metavar="JOURNAL", help="journals or audit logs: files or folders"
    )
    inputs.add_cluster(parser, required=False)
    inputs.add_policies(parser)
    parser.add_argument(
        "--parameters",
        metavar="FILE",
        help="file with the ConfigMap bayplan-parameters, used instead of the cluster's",
    )
    inputs.add_mode(parser)
    add_verdict_options(parser, "nothing is newly refused, and something else is different")
    parser.add_argument(
        "--plot",
        type=plot_file,
        metavar="FILE",
        help="draw utilisation and queue, recorded and replayed: as SVG, or as a page if FILE ends in .html",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Replays the journals or audit logs, and reports the differences. Returns 2 if no admission was decided
    again. Raises `InputError` or `PolicyError` for invalid input.
    """
    policies = inputs.policies(args.policies)
    snapshot, environment = inputs.cluster_and_environment(args)
    if args.parameters:
        configured = own_parameters(document.value for document in objects([args.parameters]))
        if configured is None:
            raise InputError(f"{args.parameters}: holds no ConfigMap bayplan-parameters")
        environment = replace(environment, configured=configured)
    environment = inputs.in_force(environment, policies)
    if args.plot and snapshot is None:
        raise InputError("--plot draws what is placed: give a cluster with -c")
    reader, differences = JournalReader(args.journal), Differences()
    again = Replay(policies, snapshot, environment)
    if snapshot is not None:
        again.lengths = _lengths(reader)
    compared = _Courses(again)
    with _progress("deciding again", reader.entries()) as entries:
        for entry in entries:
            compared.follow(entry)
            answer = again.answer(entry)
            if answer is not None:
                differences.add(entry, answer)
    courses = compared.courses(differences.last)
    rows = tuple(figures([course]) for course in courses)
    status = print_report(args, replace(differences.report(policies.revision), courses=rows))
    if args.plot and courses:
        title = next(differences.words())
        write_plot(args.plot, [PlotScene(title, courses, rows)], "Recorded and replayed", "course")
    elif args.plot:
        inputs.note(f"{args.plot}: not written, for no gang has or wants GPUs")
    for line in (*reader.problems, *differences.words(), *compared.words(), *_queue(again)):
        inputs.note(line)
    if not differences.admissions:
        return 2
    return status


def _lengths(reader: JournalReader) -> RunLengths:
    """Returns how long gangs ran, by an additional pass over the journal before the first decision. If one of
    the files is a pipe, which can be read only once, the result is empty, and a note says so.
    """
    ahead = reader.reopened()
    if ahead is None:
        inputs.note("a pipe is read once: a gang that begins earlier than it did ends when it did")
        return RunLengths()
    with _progress("reading", ahead.entries()) as entries:
        return run_lengths(entries)


@dataclass(slots=True)
class _Courses:
    """The recorded and the replayed course of the cluster, from the first entry of the journal on. There
    is none without a cluster, or if the cluster has no GPUs.
    """

    again: Replay
    recorded: Recorded | None = None

    def follow(self, entry: JournalEntry) -> None:
        """Adds an entry to the recorded course, before it is decided again."""
        snapshot = self.again.snapshot
        if self.recorded is None:
            racks = gpu_racks(snapshot) if snapshot is not None else []
            if snapshot is None or not racks:
                return
            self.again.course = ClusterCourse("replayed", snapshot, racks, entry.time)
            self.recorded = Recorded(ClusterCourse("recorded", snapshot, racks, entry.time))
        self.recorded.follow(entry)

    def courses(self, end: float) -> list[Course]:
        """Returns the recorded and the replayed course up to `end` (seconds since the epoch); none if no
        gang requests GPUs. For an audit log, which contains no placements, returns only the replayed
        course.
        """
        if self.recorded is None or self.again.course is None:
            return []
        was = [self.recorded.cluster.course(end)] if self.recorded.tells_places else []
        courses = [*was, self.again.course.course(end)]
        return courses if any(course.waits for course in courses) else []

    def words(self) -> Iterator[str]:
        """Yields a line for standard error if the recorded course is unknown."""
        if self.recorded is not None and not self.recorded.tells_places and self.again.course is not None:
            yield "no entry tells of a place, so utilisation and queue are only told as they would be"


def _queue(again: Replay) -> Iterator[str]:
    """Yields lines for standard error on how long gangs waited in the replay, and how many still wait at
    its end.
    """
    if again.let_in:
        mean = sum(again.let_in.values()) / len(again.let_in)
        gangs = counted(len(again.let_in), "gang")
        yield f"{gangs} waited for a place and got one, after {mean:.0f} s on average"
    if again.waiting:
        yield f"{counted(len(again.waiting), 'gang waits', 'gangs wait')} at the end"


@contextmanager
def _progress(label: str, entries: Iterable[JournalEntry]) -> Iterator[Iterable[JournalEntry]]:
    """A context that yields the entries, and shows a progress bar on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        yield entries
        return
    columns = (TextColumn(label + ": {task.completed} admissions"), TimeElapsedColumn())
    with Progress(*columns, console=terminal.console(sys.stderr), transient=True) as bar:
        yield bar.track(entries, total=None)
