"""`bayplan`: the command line. Exit status: 0 success, 1 something was refused, 2 bad input or usage."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from planner.model.errors import InputError, ReportedError

COMMANDS: Mapping[str, tuple[str, str]] = {
    "plan": ("decisions.plan", "show where each gang would be placed, and why"),
    "mutate": ("decisions.mutate", "print each object as the webhook would change it"),
    "report": ("decisions.report", "report what would happen to manifests or to a cluster's workloads"),
    "topology": ("clusters.topology", "generate a Topology from node labels, or draw the racks"),
    "generate": (
        "clusters.generate",
        "generate queues, flavors and ComputeDomains for KAI, Kueue and NVLink domains",
    ),
    "queue": ("clusters.queue", "list the gangs that wait, and what they wait for"),
    "why": ("clusters.why", "explain where a workload is placed, or why it waits"),
    "top": ("clusters.top", "list racks with free and used GPUs, and the gangs in them"),
    "nodes": (
        "clusters.nodes",
        "check the node labels and kubelet settings that planning relies on",
    ),
    "verify": ("clusters.verify", "compare a running gang with its plan, and measure its bandwidth"),
    "defrag": ("clusters.defrag", "find the cheapest moves that free whole racks or a place for a gang"),
    "ui": ("clusters.ui", "serve a live web page of the cluster"),
    "replay": ("decisions.replay", "evaluate recorded requests again with other policies"),
    "simulate": ("simulate", "simulate a month of a cluster under several placement strategies"),
    "test": ("decisions.test", "run the test cases of policies"),
    "policies": ("decisions.policies", "list, show, check or create policies"),
    "serve": ("installation.serve", "run the admission webhook"),
    "demo": ("demo", "run the webhook on this machine and send it examples"),
    "reservations": ("clusters.reservations", "list, show or release reservations"),
    "certs": ("installation.certs", "create, renew and show the webhook's certificates"),
    "doctor": ("installation.doctor", "check an installation, and say what to fix"),
    "unpack": ("installation.unpack", "write the manifests, chart and policies of this version to a folder"),
    "completion": ("completion", "print a shell completion script"),
}
"""For each command, its module below `webhook.cli` and its line of help. The lines are here, not in the
modules, so that `bayplan --help` need not import them.
"""


YOUNG_OBJECTS = 20_000
"""The number of new Python objects after which the cycle collector runs. With it, `plan` on 32 nodes takes
0.52 s of CPU instead of 0.55 with the default of 700 (median of ten runs), and `report` a sixth less. A
higher number would save little, and delay the release of memory. A decision of `serve` takes the same time
with both.
"""


EPILOG = """examples:
  bayplan plan -c cluster/ -f job.yaml            where would this gang be placed, and why?
  bayplan mutate -c cluster/ -f job.yaml -o diff  what would the webhook change?
  bayplan report -c cluster/ -f manifests/        what would happen to all these manifests?
  bayplan why research/Job/train                  why does this job in my cluster wait?
  bayplan demo                                    run the webhook on this machine with examples
"""


def parser(*called: str) -> argparse.ArgumentParser:
    """Returns a parser for all commands. Only the commands in `called` have their options."""
    top = argparse.ArgumentParser(
        prog="bayplan",
        description="Plan placements for gangs of GPU pods, reserve them, and write them into manifests.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"bayplan {metadata.version('bayplan')}")
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, line) in COMMANDS.items():
        if name in called:  # importing the libraries of the other commands would slow down the start
            importlib.import_module(f"webhook.cli.{module}").add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=line)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status. A user's error is printed as one line on standard
    error.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _ensure_home()
    gc.set_threshold(YOUNG_OBJECTS)
    try:
        args = parser(*words[:1]).parse_args(words)
        _check_standard_input(args)
        status: int = args.run(args)
        sys.stdout.flush()
    except ReportedError as error:
        sys.stderr.write(f"bayplan: {error}\n")
        return error.exit_status
    except BrokenPipeError:
        _discard_output()
        return 1
    except OSError as error:
        _discard_output()
        place = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"bayplan: {place}{error.strerror or error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return status


def _check_standard_input(args: argparse.Namespace) -> None:
    """Raises `InputError` if several arguments are `-`: the first one read would leave nothing for the
    others.
    """
    values = [
        part for value in vars(args).values() for part in (value if isinstance(value, list) else [value])
    ]
    if values.count("-") > 1:
        raise InputError(
            "standard input can be read once, and is asked for twice; name a file instead of one -"
        )


def _discard_output() -> None:
    """Redirects standard output to /dev/null. It is called after writing failed (the reader has gone, or
    the disk is full), because flushing the buffer at exit would raise a second error.
    """
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _ensure_home() -> None:
    """Sets $HOME to / if the user has no home directory, as container runtimes do: some libraries look it
    up when they are imported.
    """
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = os.sep


if __name__ == "__main__":
    sys.exit(main())
