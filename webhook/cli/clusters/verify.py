"""`bayplan verify`: compares a gang's pods with its plan, and measured bandwidth with the model's."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from rich.console import Console

from planner.bandwidth.nccl_tests import read_all_reduce
from planner.bandwidth.verification import Comparison, Verification, compare_measurement, verify
from planner.cluster.snapshot import Snapshot
from planner.manifests.nccl_job import IMAGE, nccl_job
from planner.model.errors import InputError, Where
from planner.model.reservation import Reservation
from planner.model.topology import HOSTNAME
from webhook.cli.common import inputs
from webhook.cli.common.parsers import Subparsers, positive_share, subcommand
from webhook.cli.common.standing_words import add_options, add_workload, look_at_snapshot
from webhook.report import terminal
from webhook.report.documents import as_yaml, document
from webhook.report.verification import lines, to_json

EPILOG = """examples:
  bayplan verify research/Job/train
  bayplan verify research/Job/train --job > nccl-test.yaml
  bayplan verify research/Job/train --measured all-reduce.txt

The job runs nccl-tests on the gang's own nodes. It starts when the GPUs are free: before the gang's pods
start, or after they have ended.

exit status: 0 all pods run where planned, and the measured bandwidth suffices; 1 otherwise; 2 bad input or
usage
"""

AT_LEAST = 0.8
"""The default of `--at-least`: the share of the model's bus bandwidth that the measurement must reach. It
is below 1 because the model uses nominal link rates, which no fabric reaches.
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `verify`."""
    parser = subcommand(
        subparsers,
        "verify",
        description="Compare where a gang's pods run with its plan, and measured bandwidth with the model's.",
        epilog=EPILOG,
    )
    add_workload(parser)
    inputs.add_cluster(parser, required=False)
    parser.add_argument(
        "--job", action="store_true", help="print a job that runs nccl-tests on the gang's nodes"
    )
    parser.add_argument("--image", default=IMAGE, help="image of the job (default: %(default)s)")
    parser.add_argument(
        "--measured", metavar="FILE", help="output of all_reduce_perf; - reads standard input"
    )
    parser.add_argument(
        "--at-least",
        type=positive_share,
        default=AT_LEAST,
        metavar="SHARE",
        help="smallest acceptable share of the expected bandwidth (default: %(default)s)",
    )
    add_options(parser, outputs=("table", "json", "yaml"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the comparison, or with `--job` the job that measures. Returns 1 if the gang is not as
    planned, the measured bandwidth is too low, or the measurement found wrong values.

    Raises `InputError` for a gang without a reservation, or an unreadable measurement.
    """
    return look_at_snapshot(args, partial(_show, args))


def _show(args: argparse.Namespace, snapshot: Snapshot) -> int:
    verified = [verify(snapshot, held) for held in _held(snapshot, args.name)]
    if args.measured and len(verified) > 1:
        first = verified[0].held.gang
        words = f"{args.name} has {len(verified)} replicas; name the one that was measured, such as {first}"
        raise InputError(words, Where("--measured"))
    if args.job:
        sys.stdout.write("---\n".join(as_yaml(_job(args, snapshot, each)) for each in verified))
        return 0
    compared = [_compared(args, each) for each in verified]
    if args.output == "table":
        out: Console = terminal.console()
        for each, comparison in zip(verified, compared, strict=True):
            for line in lines(each, comparison, args.at_least):
                out.print(line)
    else:
        pairs = zip(verified, compared, strict=True)
        items = [to_json(each, comparison, args.at_least) for each, comparison in pairs]
        sys.stdout.write(document(args.output, {"gangs": items}))
    low = any(comparison is not None and comparison.share < args.at_least for comparison in compared)
    wrong = any(comparison is not None and comparison.measured.wrong for comparison in compared)
    return int(low or wrong or not all(each.as_planned for each in verified))


def _held(snapshot: Snapshot, name: str) -> list[Reservation]:
    """Returns the reservations of a gang, or of all replicas of a workload. Raises `InputError` if there
    is none.
    """
    held = [r for r in snapshot.reservations if r.gang == name or r.gang.startswith(f"{name}/")]
    if not held:
        absence = f"no gang {name!r} holds a place here; `bayplan why {name}` says what it waits for"
        raise InputError(absence, Where("NAMESPACE/KIND/NAME"))
    return sorted(held, key=lambda reservation: reservation.gang)


def _compared(args: argparse.Namespace, verified: Verification) -> Comparison | None:
    if not args.measured:
        return None
    where = Where(args.measured)
    if verified.layout is None:
        raise InputError(f"{verified.held.gang} has fewer than two whole GPUs: nothing to compare", where)
    text = sys.stdin.read() if args.measured == "-" else Path(args.measured).read_text(errors="replace")
    run_read = read_all_reduce(text, where)
    gpus = sum(verified.gpus.values())
    if run_read.ranks not in (0, gpus):
        other = f"is of {run_read.ranks} GPUs, and {verified.held.gang} has {gpus}"
        raise InputError(f"{other}; run the job that --job prints", where)
    return compare_measurement(verified.layout, run_read)


def _job(args: argparse.Namespace, snapshot: Snapshot, verified: Verification) -> dict[str, object]:
    gang = verified.held.gang
    if verified.layout is None:
        raise InputError(f"{gang} has fewer than two whole GPUs: nothing to test", Where("--job"))
    namespace, _, rest = gang.partition("/")
    name = f"nccl-{rest.partition('/')[2].replace('/', '-')}"[:50].rstrip("-.")
    hosts = {snapshot.nodes[node].labels.get(HOSTNAME, node): gpus for node, gpus in verified.gpus.items()}
    return nccl_job(name, namespace, hosts, verified.devices_per_gpu, args.image)
