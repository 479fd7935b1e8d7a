"""`bayplan`: the command line. Exit status: 0 all well, 1 something was refused, 2 bad input or usage."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from planner.model.errors import ReportedError

COMMANDS: Mapping[str, tuple[str, str]] = {
    "plan": ("decisions.plan", "where each gang would go, and why"),
    "mutate": ("decisions.mutate", "each object as the webhook would leave it"),
    "report": ("decisions.report", "what would happen to these manifests, for people and for CI"),
    "topology": ("clusters.topology", "propose a Topology from node labels, or draw it"),
    "generate": ("clusters.generate", "queues, flavors and ComputeDomains for KAI, Kueue and NVLink domains"),
    "queue": ("clusters.queue", "who waits for a place in a cluster, and for what"),
    "why": ("clusters.why", "where a workload of a cluster is, or what it waits for"),
    "top": ("clusters.top", "racks with free and used GPUs, and who is in them"),
    "nodes": (
        "clusters.nodes",
        "labels and kubelet settings of nodes that plans rest on, and how to mend them",
    ),
    "verify": ("clusters.verify", "where a gang's pods are beside the plan, and what its fabric gives"),
    "defrag": ("clusters.defrag", "the cheapest moves that free whole racks, or a gang's place"),
    "ui": ("clusters.ui", "a live page of all that, for the browser"),
    "replay": ("decisions.replay", "decide recorded admissions again under other policies"),
    "simulate": ("simulate", "what a month would look like under several ways to place gangs"),
    "test": ("decisions.test", "run the policies' own cases"),
    "policies": ("decisions.policies", "list, show or check policies"),
    "serve": ("installation.serve", "the webhook"),
    "demo": ("demo", "the whole way of a request, on this machine"),
    "reservations": ("clusters.reservations", "list, show or release what gangs hold"),
    "certs": ("installation.certs", "make, renew and show the webhook's certificates"),
    "doctor": ("installation.doctor", "check an installation, and say what to mend"),
    "unpack": ("installation.unpack", "the manifests, chart and policies of this version, as files"),
    "completion": ("completion", "the script with which a shell completes all of these"),
}
"""Each command with its module below `webhook.cli` and its line of help: help needs none of the modules."""


EPILOG = """examples:
  bayplan plan -c cluster/ -f job.yaml            where would this gang go, and why there?
  bayplan mutate -c cluster/ -f job.yaml -o diff  what would the webhook write into it?
  bayplan report -c cluster/ -f manifests/        what would happen to all of these?
  bayplan why research/Job/train                  what does this job of my cluster wait for?
  bayplan demo                                    see the whole way of a request, on this machine
"""


def parser(*called: str) -> argparse.ArgumentParser:
    """The parser that knows every command by name, and the options of those that are called."""
    top = argparse.ArgumentParser(
        prog="bayplan",
        description="Plan gangs of GPU pods, reserve their place, and write it into the manifest.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"bayplan {metadata.version('bayplan')}")
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, line) in COMMANDS.items():
        if name in called:  # the libraries of the others would cost start-up time
            importlib.import_module(f"webhook.cli.{module}").add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=line)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; what a user did wrong is one line on standard error, never a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    _at_home()
    try:
        args = parser(*words[:1]).parse_args(words)
        status: int = args.run(args)
        sys.stdout.flush()
    except ReportedError as error:
        sys.stderr.write(f"bayplan: {error}\n")
        return error.exit_status
    except BrokenPipeError:
        _write_no_more()
        return 1
    except OSError as error:
        _write_no_more()
        place = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"bayplan: {place}{error.strerror or error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return status


def _write_no_more() -> None:
    """What is left in the buffer goes nowhere: its reader is gone or the disk is full, and that was said."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _at_home() -> None:
    """A uid without a home, as in a container, gets / as runtimes do: libraries ask for one on import."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = os.sep


if __name__ == "__main__":
    sys.exit(main())
