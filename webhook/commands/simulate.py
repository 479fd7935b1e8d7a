"""`bayplan simulate`: a month of a GPU cluster under several ways to place gangs, side by side."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import orjson
from rich.console import Console
from rich.progress import Progress, TaskID

from planner.errors import InputError, Where
from planner.floor import Floor
from planner.outcome import Outcome, Wait, outcome
from planner.simulated_jobs import Job, jobs
from planner.simulation import Run, simulate
from planner.strategies import BestFit, FirstFit, Planned, PodByPod, Strategy
from webhook.commands import inputs
from webhook.simulation_plot import plot
from webhook.terminal import console, table

EPILOG = """examples:
  bayplan simulate --days 3
  bayplan simulate --plot month.svg
  bayplan simulate --nodes 288 --load 0.9 --seed 7 -o json

Jobs follow Philly's sizes and lengths with 3 % of gangs from 64 GPUs up; the same jobs for every strategy.
A gang that fits a rack must be in one rack; its length does not depend on its place. The all-reduce column
is the time beside that in as few racks as possible, by the hierarchical ring model.
"""
_Made = Callable[[Floor, int], Strategy]
STRATEGIES: dict[str, _Made] = {
    "first-fit": lambda floor, hold_from: FirstFit(),
    "best-fit": lambda floor, hold_from: BestFit(),
    "pod-by-pod": lambda floor, hold_from: PodByPod(),
    "nodes": lambda floor, hold_from: Planned(floor, "nodes", hold_from),
    "domains": lambda floor, hold_from: Planned(floor, "domain", hold_from),
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `simulate`."""
    parser = subparsers.add_parser(
        "simulate",
        help="what a month would look like under several ways to place gangs",
        description="Simulate a cluster's days: Bayplan beside first fit, best fit and pod-by-pod affinity.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--days", type=float, default=30.0, help="days to simulate (default: 30)")
    parser.add_argument("--nodes", type=int, default=144, help="nodes, in racks (default: 144)")
    parser.add_argument("--nodes-per-rack", type=int, default=18, metavar="N", help="(default: 18)")
    parser.add_argument("--gpus-per-node", type=int, default=4, metavar="N", help="(default: 4)")
    parser.add_argument(
        "--load", type=float, default=0.6, help="GPU time wanted of that there is (default: 0.6)"
    )
    parser.add_argument("--seed", type=int, default=1, help="another seed, other jobs (default: 1)")
    parser.add_argument(
        "--hold-from",
        type=int,
        default=64,
        metavar="GPUS",
        help="in `domains`, gangs from this size up hold whole domains (default: 64)",
    )
    parser.add_argument("--strategy", nargs="+", choices=tuple(STRATEGIES), default=list(STRATEGIES))
    parser.add_argument("--plot", metavar="FILE.svg", help="also draw it")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Simulate and print. Raises `InputError` for numbers that make no cluster."""
    try:
        wanted = jobs(
            Random(args.seed),
            gpus=_floor(args).gpus,
            per_node=args.gpus_per_node,
            days=args.days,
            load=args.load,
        )
    except ValueError as error:
        raise InputError(str(error), Where("bayplan simulate")) from error
    runs = _simulate(args, wanted)
    outcomes = [outcome(one) for one in runs]
    if args.plot:
        _write(args.plot, plot(runs, outcomes, _title(args, wanted)))
    if args.output == "json":
        document = {"jobs": len(wanted), "strategies": [one.to_json() for one in outcomes]}
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        _table(outcomes, _title(args, wanted))
    return 0


def _floor(args: argparse.Namespace) -> Floor:
    if args.nodes_per_rack > 0 and args.nodes % args.nodes_per_rack:
        raise InputError(
            f"{args.nodes} nodes do not fill racks of {args.nodes_per_rack}; use a multiple", Where("--nodes")
        )
    return Floor(args.nodes // max(1, args.nodes_per_rack), args.nodes_per_rack, args.gpus_per_node)


def _simulate(args: argparse.Namespace, wanted: Sequence[Job]) -> list[Run]:
    err = Console(stderr=True)
    runs: list[Run] = []
    with Progress(console=err, transient=True, disable=not err.is_terminal) as shown:
        for name in dict.fromkeys(args.strategy):
            task = shown.add_task(name, total=1.0)

            def progress(share: float, task: TaskID = task) -> None:
                shown.update(task, completed=share)

            strategy = STRATEGIES[name](_floor(args), args.hold_from)
            runs.append(simulate(wanted, _floor(args), strategy, args.days, progress))
    return runs


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", Where(path)) from error
    inputs.note(f"plot: {path}")


def _title(args: argparse.Namespace, wanted: Sequence[Job]) -> str:
    floor = _floor(args)
    return (
        f"{args.days:g} days, {floor.racks} racks of {floor.per_rack} nodes, {floor.gpus} GPUs, "
        f"{len(wanted)} jobs, load {args.load:g}, seed {args.seed}"
    )


def _table(outcomes: Sequence[Outcome], title: str) -> None:
    out = console()
    out.print(title)
    columns = ("strategy", "GPUs running", "held idle", "nodes partly used", "racks pristine", "all-reduce")
    rows = [
        (
            one.strategy,
            *(f"{share:.1%}" for share in (one.running, one.held, one.partly, one.pristine)),
            f"{one.slowdown:.2f}×",
        )
        for one in outcomes
    ]
    out.print(table(columns, rows))
    sizes = [max((one.waits[i].size for one in outcomes), key=len) for i in range(len(outcomes[0].waits))]
    out.print("\nhours waited, mean / 90th percentile (gangs never started), by GPUs of the gang")
    out.print(table(("strategy", *sizes), [(one.strategy, *map(_wait, one.waits)) for one in outcomes]))


def _wait(wait: Wait) -> str:
    return f"{wait.mean / 3600:.2f} / {wait.p90 / 3600:.2f}{f' ({wait.never})' if wait.never else ''}"
