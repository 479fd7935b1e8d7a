"""`bayplan`: the command line. Exit status: 0 all well, 1 something was refused, 2 bad input or usage."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from planner.ledger.ledger import LedgerUnavailable
from planner.model.errors import InputError
from webhook.policy.loading.errors import PolicyError

COMMANDS = (
    "plan", "mutate", "report", "topology", "simulate", "test", "policies", "serve", "demo",
    "reservations", "certs", "doctor",
)  # fmt: skip


EPILOG = """examples:
  bayplan plan -c cluster/ -f job.yaml            where would this gang go, and why there?
  bayplan mutate -c cluster/ -f job.yaml -o diff  what would the webhook write into it?
  bayplan report -c cluster/ -f manifests/        what would happen to all of these?
  bayplan demo                                    see the whole way of a request, on this machine
"""


def parser(commands: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser with every command in it."""
    top = argparse.ArgumentParser(
        prog="bayplan",
        description="Plan gangs of GPU pods, reserve their place, and write it into the manifest.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in commands:
        importlib.import_module(f"webhook.cli.{name}").add_parser(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; what a user did wrong is one line on standard error, never a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    # Only the command that is called is imported: the others' libraries cost start-up time.
    commands = words[:1] if words and words[0] in COMMANDS else COMMANDS
    _at_home()
    try:
        args = parser(commands).parse_args(words)
        status: int = args.run(args)
        sys.stdout.flush()
    except (InputError, PolicyError) as error:
        sys.stderr.write(f"bayplan: {error}\n")
        return 2
    except LedgerUnavailable as error:
        sys.stderr.write(f"bayplan: {error}\n")
        return 1
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
