"""`bayplan simulate`: simulates a GPU cluster under several placement strategies and compares them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from rich.console import Console
from rich.progress import Progress, TaskID

from planner.model.errors import InputError, Where
from planner.model.podgroup import ReserveMode
from planner.model.words import counted
from planner.planning.defragmentation.limits import MoveLimits
from planner.simulation.course import Course
from planner.simulation.figures import figures
from planner.simulation.hall import Hall
from planner.simulation.jobs import Job, jobs
from planner.simulation.planned import DefragmentingStrategy, PlannedStrategy
from planner.simulation.simulate import simulate
from planner.simulation.strategies import BestFit, FirstFit, PodByPod
from planner.simulation.strategy import Strategy
from webhook.cli.common import inputs
from webhook.cli.common.parsers import (
    Subparsers,
    amount,
    count,
    duration,
    share,
    subcommand,
    whole,
)
from webhook.cli.common.plotting import plot_file, write_plot
from webhook.report.documents import indented
from webhook.report.figures.plot import PlotScene
from webhook.report.figures.table import print_figures
from webhook.report.terminal import console

EPILOG = """examples:
  bayplan simulate --days 3
  bayplan simulate --plot month.svg                 or month.html, with the figures
  bayplan simulate --nodes 288 --load 0.9 --seed 7 8 9 -o json

Jobs follow the sizes and durations of the Philly trace, with 3 % of gangs of 64 GPUs or more. All strategies
get the same jobs. A gang that fits in a rack must be in one rack, and its duration does not depend on its
placement. The all-reduce column compares the time with a placement in as few racks as possible, by the
hierarchical ring model. `auto` is Bayplan's default for gangs and single pods. "whole racks startable" is the
share of the time in which a gang of 1, 2 or 4 whole racks could have started immediately.

The two default loads show different effects. At 0.6, queues drain, and what matters is the space that a
strategy leaves for large gangs. At 0.8, queues hardly drain, and the strategy that uses the GPUs best has the
shortest queue.
"""


LOADS = (0.6, 0.8)
"""The default loads: the share of all GPU time that the jobs request. `EPILOG` says why there are two."""


MAX_LOAD = 2.0
"""Maximum load: above 1, the queue grows all the time, and each job in it is planned again at each event."""


LIMITS = MoveLimits(after=1800.0)
"""The defaults of the options for moves. A gang waits half an hour before other gangs are moved for it."""


LINE_SECONDS = 10.0
"""Seconds between two lines of progress if standard error is not a terminal."""


_StrategyOfHall = Callable[[Hall, argparse.Namespace], Strategy]
"""The type of a function that makes a strategy for a hall (all simulated racks), by the command's options."""


STRATEGIES: dict[str, _StrategyOfHall] = {
    "first-fit": lambda floor, args: FirstFit(),
    "best-fit": lambda floor, args: BestFit(),
    "pod-by-pod": lambda floor, args: PodByPod(),
    "auto": lambda floor, args: PlannedStrategy(floor, "auto", args.hold_from),
    "nodes": lambda floor, args: PlannedStrategy(floor, "nodes", args.hold_from),
    "domains": lambda floor, args: PlannedStrategy(floor, "domain", args.hold_from),
    "auto-moves": lambda floor, args: _with_moves(floor, "auto", args),
    "nodes-moves": lambda floor, args: _with_moves(floor, "nodes", args),
    "domains-moves": lambda floor, args: _with_moves(floor, "domain", args),
}


DEFAULT_STRATEGIES = tuple(name for name in STRATEGIES if not name.endswith("-moves"))
"""The strategies that are compared without `--strategy`: those that move no running gangs."""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `simulate`."""
    parser = subcommand(
        subparsers,
        "simulate",
        description="Simulate days of a cluster, and compare Bayplan with first fit, best fit and affinity.",
        epilog=EPILOG,
    )
    _add_course(parser)
    parser.add_argument(
        "--strategy", nargs="+", choices=tuple(STRATEGIES), default=list(DEFAULT_STRATEGIES), metavar="NAME",
        help=f"any of {', '.join(STRATEGIES)} (default: those without moves)",
    )  # fmt: skip
    _add_moves(parser)
    parser.add_argument(
        "--plot",
        type=plot_file,
        metavar="FILE",
        help="draw the results: as SVG, or as a page if FILE ends in .html",
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def load_share(text: str) -> float:
    """Parses a value of `--load`. Raises `ArgumentTypeError`."""
    load = amount(text)
    if load > MAX_LOAD:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a load above 0 and at most {MAX_LOAD:g}; 60 percent of all GPU time is 0.6"
        )
    return load


def _add_course(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the cluster, its load and the simulated time."""
    parser.add_argument("--days", type=amount, default=30.0, help="days to simulate (default: 30)")
    parser.add_argument("--nodes", type=count, default=144, help="number of nodes (default: 144)")
    parser.add_argument(
        "--nodes-per-rack", type=count, default=18, metavar="N", help="nodes in each rack (default: 18)"
    )
    parser.add_argument(
        "--gpus-per-node", type=count, default=4, metavar="N", help="GPUs in each node (default: 4)"
    )
    parser.add_argument(
        "--load",
        type=load_share,
        nargs="+",
        default=list(LOADS),
        help="requested share of all GPU time (default: 0.6 0.8)",
    )
    parser.add_argument(
        "--seed",
        type=whole,
        nargs="+",
        default=[1],
        help="seeds of the random jobs; with several, the mean is shown",
    )
    parser.add_argument(
        "--hold-from",
        type=count,
        default=64,
        metavar="GPUS",
        help="strategy `domains`: smallest gang that reserves whole domains (default: 64)",
    )


def _add_moves(parser: argparse.ArgumentParser) -> None:
    """Adds the options of strategies with moves, which restart running gangs on other nodes to make room."""
    moves = parser.add_argument_group(
        "with moves", "gangs that wait for long get room by restarting others elsewhere, in NAME-moves"
    )
    moves.add_argument(
        "--move-after", type=duration, default=LIMITS.after, metavar="SECONDS",
        help="move others for a gang that has waited this long (default: %(default)g)",
    )  # fmt: skip
    moves.add_argument(
        "--move-every", type=duration, default=LIMITS.every, metavar="SECONDS",
        help="minimum time between two sets of moves (default: %(default)g)",
    )  # fmt: skip
    moves.add_argument(
        "--move-gpu-hours", type=amount, default=LIMITS.gpu_hours, metavar="N",
        help="most work that may be lost for one gang (default: %(default)g)",
    )  # fmt: skip
    moves.add_argument(
        "--restartable", type=share, default=1.0, metavar="SHARE",
        help="share of jobs that can be restarted (default: 1)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Simulates each load with each strategy, and prints the figures.

    Raises `InputError` if the number of nodes is not a multiple of the nodes per rack.
    """
    months = [(load, [_jobs(args, load, seed) for seed in dict.fromkeys(args.seed)]) for load in args.load]
    scenes: list[PlotScene] = []
    documents: list[dict[str, object]] = []
    for load, wanted in months:
        runs = _simulate(args, wanted)
        rows = [figures(seeds) for seeds in runs]
        title = _title(args, load, wanted)
        scenes.append(PlotScene(title, [seeds[0] for seeds in runs], rows))
        count = sum(map(len, wanted))
        strategies = [{"strategy": row.name, **row.to_json()} for row in rows]
        documents.append({"load": load, "jobs": count, "strategies": strategies})
        if args.output == "table":
            out = console()
            out.print(title if len(scenes) == 1 else f"\n{title}")
            print_figures(out, rows, "strategy")
    if args.plot:
        write_plot(args.plot, scenes, "Ways to place gangs", "strategy")
    if args.output == "json":
        document = {"seeds": list(dict.fromkeys(args.seed)), "loads": documents}
        sys.stdout.write(indented(document))
    return 0


def _jobs(args: argparse.Namespace, load: float, seed: int) -> Sequence[Job]:
    gpus = _floor(args).gpus
    return jobs(Random(seed), gpus=gpus, per_node=args.gpus_per_node, days=args.days, load=load)


def _floor(args: argparse.Namespace) -> Hall:
    if args.nodes % args.nodes_per_rack:
        raise InputError(
            f"{args.nodes} nodes do not fill racks of {args.nodes_per_rack}; use a multiple", Where("--nodes")
        )
    return Hall(args.nodes // args.nodes_per_rack, args.nodes_per_rack, args.gpus_per_node)


def _with_moves(floor: Hall, mode: ReserveMode, args: argparse.Namespace) -> DefragmentingStrategy:
    limits = MoveLimits(args.move_after, args.move_every, args.move_gpu_hours)
    return DefragmentingStrategy(floor, mode, args.hold_from, limits, args.restartable)


def _simulate(args: argparse.Namespace, wanted: Sequence[Sequence[Job]]) -> list[list[Course]]:
    """Returns the simulated courses of each strategy: a list for each, with one course for each seed."""
    err = Console(stderr=True)
    runs: list[list[Course]] = []
    notes = _ProgressNotes()
    with Progress(console=err, transient=True, disable=not err.is_terminal) as shown:
        for name in dict.fromkeys(args.strategy):
            task = shown.add_task(name, total=float(len(wanted)))
            seeds: list[Course] = []
            for month in wanted:

                def progress(
                    share: float, task: TaskID = task, name: str = name, before: int = len(seeds)
                ) -> None:
                    shown.update(task, completed=before + share)
                    if not err.is_terminal:
                        notes.tell(name, (before + share) / len(wanted))

                strategy = STRATEGIES[name](_floor(args), args)
                seeds.append(simulate(month, _floor(args), strategy, args.days, progress))
            runs.append(seeds)
    return runs


@dataclass(slots=True)
class _ProgressNotes:
    """Prints progress if standard error is not a terminal: a line every `LINE_SECONDS`, none for a short
    run.
    """

    last: float = field(default_factory=time.monotonic)

    def tell(self, name: str, share: float) -> None:
        """Prints the simulated `share` (0 to 1) of a strategy, if the last line is old enough."""
        if time.monotonic() - self.last > LINE_SECONDS:
            self.last = time.monotonic()
            inputs.note(f"{name}: {share:.0%} simulated")


def _title(args: argparse.Namespace, load: float, wanted: Sequence[Sequence[Job]]) -> str:
    floor = _floor(args)
    seeds = list(dict.fromkeys(args.seed))
    return (
        f"load {load:g}: {args.days:g} {'day' if args.days == 1 else 'days'}, "
        f"{counted(floor.racks, 'rack')} of {counted(floor.per_rack, 'node')}, "
        f"{counted(floor.gpus, 'GPU')}, {counted(sum(map(len, wanted)), 'job')}, "
        f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    )
