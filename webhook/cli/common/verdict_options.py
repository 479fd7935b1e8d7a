"""The shared parts of `report` and `replay`: options of the output, and the exit status."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from webhook.report.formats import FORMATS
from webhook.report.model import Report


def add_verdict_options(parser: argparse.ArgumentParser, warnings: str) -> None:
    """Adds `-o`, `--all` and `--warn-exit-code`.

    `warnings`: when the exit status of `--warn-exit-code` is used, as words for its help.
    """
    parser.add_argument("-o", "--output", choices=tuple(FORMATS), default="table")
    parser.add_argument(
        "--all", action="store_true", help="include objects that are not affected, in human-readable formats"
    )
    parser.add_argument(
        "--warn-exit-code", type=_status_number, default=0, metavar="N", help=f"exit status if {warnings}"
    )


def print_report(args: argparse.Namespace, report: Report) -> int:
    """Prints the report in the format of `-o`, and returns the exit status: 1 if there is a failure or an
    error, that of `--warn-exit-code` if there are only warnings, else 0.
    """
    FORMATS[args.output](replace(report, every=args.all), sys.stdout)
    summary = report.summary
    if summary["fail"] or summary["error"]:
        return 1
    status: int = args.warn_exit_code if summary["warn"] else 0
    return status


def _status_number(text: str) -> int:
    """Parses an exit status from 0 to 255. Shells see only its last eight bits, so 256 would mean success.

    Raises `ArgumentTypeError`.
    """
    if not (text.isdecimal() and text.isascii() and int(text) < 256):
        raise argparse.ArgumentTypeError(f"{text!r} is not an exit status: use 0 to 255")
    return int(text)
