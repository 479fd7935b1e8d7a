"""`bayplan simulate`: a month of a GPU cluster under several ways to place gangs, side by side."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from rich.console import Console
from rich.progress import Progress, TaskID

from planner.model.errors import InputError, Where
from planner.simulation.hall import Hall
from planner.simulation.jobs import Job, jobs
from planner.simulation.results import SimulationResult, WaitingTime, outcome
from planner.simulation.simulate import WHOLE_RACKS, SimulationRun, Strategy, simulate
from planner.simulation.strategies import BestFit, FirstFit, PlannedStrategy, PodByPod
from webhook.cli import inputs
from webhook.cli.parsers import Subparsers, subcommand
from webhook.cli.simulate.page import page
from webhook.cli.simulate.plot import PlotScene, plot
from webhook.report.documents import indented
from webhook.report.terminal import console, table

EPILOG = """examples:
  bayplan simulate --days 3
  bayplan simulate --plot month.svg                 or month.html, with the figures
  bayplan simulate --nodes 288 --load 0.9 --seed 7 8 9 -o json

Jobs follow Philly's sizes and lengths with 3 % of gangs from 64 GPUs up; the same jobs for every strategy.
A gang that fits a rack must be in one rack; its length does not depend on its place. The all-reduce column
is the time beside that in as few racks as possible, by the hierarchical ring model. `auto` is what Bayplan
holds where nobody says otherwise, of gangs and of single pods. "whole racks startable":
the share of the time in which a gang of 1, 2 or 4 whole racks could have started at once.

Two loads are the default, for they show two things: at 0.6 queues come to an end and what a strategy leaves
free for large gangs tells; at 0.8 they hardly do, and who uses the GPUs best has the shorter queue.
"""


LOADS = (0.6, 0.8)


LINE_SECONDS = 10.0
"""How often the progress is told where standard error is no terminal."""


_StrategyOfHall = Callable[[Hall, int], Strategy]


STRATEGIES: dict[str, _StrategyOfHall] = {
    "first-fit": lambda floor, hold_from: FirstFit(),
    "best-fit": lambda floor, hold_from: BestFit(),
    "pod-by-pod": lambda floor, hold_from: PodByPod(),
    "auto": lambda floor, hold_from: PlannedStrategy(floor, "auto", hold_from),
    "nodes": lambda floor, hold_from: PlannedStrategy(floor, "nodes", hold_from),
    "domains": lambda floor, hold_from: PlannedStrategy(floor, "domain", hold_from),
}


def add_parser(subparsers: Subparsers) -> None:
    """Add `simulate`."""
    parser = subcommand(
        subparsers,
        "simulate",
        description="Simulate a cluster's days: Bayplan beside first fit, best fit and pod-by-pod affinity.",
        epilog=EPILOG,
    )
    parser.add_argument("--days", type=float, default=30.0, help="days to simulate (default: 30)")
    parser.add_argument("--nodes", type=int, default=144, help="nodes, in racks (default: 144)")
    parser.add_argument("--nodes-per-rack", type=int, default=18, metavar="N", help="(default: 18)")
    parser.add_argument("--gpus-per-node", type=int, default=4, metavar="N", help="(default: 4)")
    parser.add_argument(
        "--load", type=float, nargs="+", default=list(LOADS), help="GPU time wanted (default: 0.6 0.8)"
    )
    parser.add_argument(
        "--seed", type=int, nargs="+", default=[1], help="other seeds, other jobs; several: the mean of all"
    )
    parser.add_argument(
        "--hold-from",
        type=int,
        default=64,
        metavar="GPUS",
        help="in `domains`, gangs from this size up hold whole domains (default: 64)",
    )
    parser.add_argument("--strategy", nargs="+", choices=tuple(STRATEGIES), default=list(STRATEGIES))
    parser.add_argument("--plot", metavar="FILE", help="also draw it: as SVG, or FILE.html as a page")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Simulate and print. Raises `InputError` for numbers that make no cluster."""
    months = [(load, [_jobs(args, load, seed) for seed in dict.fromkeys(args.seed)]) for load in args.load]
    scenes: list[PlotScene] = []
    documents: list[dict[str, object]] = []
    for load, wanted in months:
        runs = _simulate(args, wanted)
        outcomes = [outcome(seeds) for seeds in runs]
        title = _title(args, load, wanted)
        scenes.append(PlotScene(title, [seeds[0] for seeds in runs], outcomes))
        count = sum(map(len, wanted))
        documents.append(
            {"load": load, "jobs": count, "strategies": [outcome.to_json() for outcome in outcomes]}
        )
        if args.output == "table":
            _table(outcomes, title, first=len(scenes) == 1)
    if args.plot:
        _write(args.plot, page(scenes) if args.plot.endswith(".html") else plot(scenes))
    if args.output == "json":
        document = {"seeds": list(dict.fromkeys(args.seed)), "loads": documents}
        sys.stdout.write(indented(document))
    return 0


def _jobs(args: argparse.Namespace, load: float, seed: int) -> Sequence[Job]:
    chance = Random(seed)
    try:
        return jobs(chance, gpus=_floor(args).gpus, per_node=args.gpus_per_node, days=args.days, load=load)
    except ValueError as error:
        raise InputError(str(error), Where("bayplan simulate")) from error


def _floor(args: argparse.Namespace) -> Hall:
    if args.nodes_per_rack > 0 and args.nodes % args.nodes_per_rack:
        raise InputError(
            f"{args.nodes} nodes do not fill racks of {args.nodes_per_rack}; use a multiple", Where("--nodes")
        )
    return Hall(args.nodes // max(1, args.nodes_per_rack), args.nodes_per_rack, args.gpus_per_node)


def _simulate(args: argparse.Namespace, wanted: Sequence[Sequence[Job]]) -> list[list[SimulationRun]]:
    """The runs of each strategy, one for each seed's jobs."""
    err = Console(stderr=True)
    runs: list[list[SimulationRun]] = []
    notes = _ProgressNotes()
    with Progress(console=err, transient=True, disable=not err.is_terminal) as shown:
        for name in dict.fromkeys(args.strategy):
            task = shown.add_task(name, total=float(len(wanted)))
            seeds: list[SimulationRun] = []
            for month in wanted:

                def progress(
                    share: float, task: TaskID = task, name: str = name, before: int = len(seeds)
                ) -> None:
                    shown.update(task, completed=before + share)
                    if not err.is_terminal:
                        notes.tell(name, (before + share) / len(wanted))

                strategy = STRATEGIES[name](_floor(args), args.hold_from)
                seeds.append(simulate(month, _floor(args), strategy, args.days, progress))
            runs.append(seeds)
    return runs


@dataclass(slots=True)
class _ProgressNotes:
    """Progress where standard error is no terminal: a line now and then, none of a short run."""

    last: float = field(default_factory=time.monotonic)

    def tell(self, name: str, share: float) -> None:
        """So much of a strategy is done."""
        if time.monotonic() - self.last > LINE_SECONDS:
            self.last = time.monotonic()
            inputs.note(f"{name}: {share:.0%} simulated")


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", Where(path)) from error
    inputs.note(f"plot: {path}")


def _title(args: argparse.Namespace, load: float, wanted: Sequence[Sequence[Job]]) -> str:
    floor = _floor(args)
    seeds = list(dict.fromkeys(args.seed))
    return (
        f"load {load:g}: {args.days:g} days, {floor.racks} racks of {floor.per_rack} nodes, "
        f"{floor.gpus} GPUs, {sum(map(len, wanted))} jobs, "
        f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    )


def _table(outcomes: Sequence[SimulationResult], title: str, *, first: bool) -> None:
    out = console()
    out.print(title if first else f"\n{title}")
    whole = "/".join(map(str, WHOLE_RACKS))
    columns = ("strategy", "GPUs running", "held idle", "nodes partly used", "racks pristine")
    rows = [
        (
            outcome.strategy,
            _running(outcome),
            *(f"{share:.1%}" for share in (outcome.held, outcome.partly, outcome.pristine)),
            " / ".join(f"{share:.0%}" for share in outcome.startable),
            f"{outcome.slowdown:.2f}×",
        )
        for outcome in outcomes
    ]
    out.print(table((*columns, f"{whole} whole racks startable", "all-reduce"), rows))
    sizes = [
        max((outcome.waits[i].size for outcome in outcomes), key=len) for i in range(len(outcomes[0].waits))
    ]
    out.print("\nhours waited, mean / 90th percentile (gangs never started), by GPUs of the gang")
    out.print(
        table(("strategy", *sizes), [(outcome.strategy, *map(_wait, outcome.waits)) for outcome in outcomes])
    )


def _running(outcome: SimulationResult) -> str:
    spread = f" ({min(outcome.by_seed):.1%}–{max(outcome.by_seed):.1%})" if len(outcome.by_seed) > 1 else ""
    return f"{outcome.running:.1%}{spread}"


def _wait(wait: WaitingTime) -> str:
    return f"{wait.mean / 3600:.2f} / {wait.p90 / 3600:.2f}{f' ({wait.never})' if wait.never else ''}"
