"""How every command and verb is added to the command line: its help ends with the command's own epilog."""

from __future__ import annotations

import argparse
import math
from typing import TypeAlias

PORTS = 65_535

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def subcommand(
    subparsers: Subparsers, name: str, *, description: str, epilog: str, help: str | None = None
) -> argparse.ArgumentParser:
    """A command, or a verb of one. `help`: its line in the list of verbs; for commands `main` has it."""
    return subparsers.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def verb(subparsers: Subparsers, name: str, text: str, epilog: str) -> argparse.ArgumentParser:
    """A verb whose description is its help as a sentence."""
    return subcommand(subparsers, name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=epilog)


def port(text: str) -> int:
    """A TCP port, 0 for a free one. Raises `ArgumentTypeError`."""
    if not text.isascii() or not text.isdigit() or int(text) > PORTS:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to {PORTS}")
    return int(text)


def duration(text: str) -> float:
    """Seconds above 0. Raises `ArgumentTypeError`."""
    seconds = _number(text)
    if not 0 < seconds < math.inf:  # NaN is in no range either
        raise argparse.ArgumentTypeError(f"{text!r} is no time: seconds above 0")
    return seconds


def share(text: str) -> float:
    """A share above 0 and at most 1. Raises `ArgumentTypeError`."""
    part = _number(text)
    if not 0 < part <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: above 0, 1 at most")
    return part


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
