"""Adds commands and their verbs (`list` in `bayplan reservations list`) to the command line, and parses
the types of their options.
"""

from __future__ import annotations

import argparse
import ipaddress
import math
from typing import TypeAlias

PORTS = 65_535

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def subcommand(
    subparsers: Subparsers, name: str, *, description: str, epilog: str, help: str | None = None
) -> argparse.ArgumentParser:
    """Adds a command, or a verb of a command, and returns its parser.

    `help`: the line of a verb in the command's help. The lines of commands are in `main.COMMANDS`.
    """
    return subparsers.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def verb(subparsers: Subparsers, name: str, text: str, epilog: str) -> argparse.ArgumentParser:
    """Adds a verb and returns its parser. Its line of help is `text`, its description the same as a
    sentence.
    """
    return subcommand(subparsers, name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=epilog)


def port(text: str) -> int:
    """Parses a TCP port; 0 means any free port. Raises `ArgumentTypeError`."""
    if not text.isascii() or not text.isdigit() or int(text) > PORTS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: use 0 to {PORTS}")
    return int(text)


def is_loopback(host: str) -> bool:
    """Reports whether only this machine can reach a listen address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def count(text: str) -> int:
    """Parses an integer of at least 1. Raises `ArgumentTypeError`."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a count: use 1, 2, 3 …")
    return int(text)


def duration(text: str) -> float:
    """Parses seconds above 0. Raises `ArgumentTypeError`."""
    seconds = _number(text)
    if not 0 < seconds < math.inf:  # also rejects NaN
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def amount(text: str) -> float:
    """Parses a finite number above 0. Raises `ArgumentTypeError`."""
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def whole(text: str) -> int:
    """Parses an integer of at least 0. Raises `ArgumentTypeError`."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number: use 0, 1, 2 …")
    return int(text)


def pause(text: str) -> float:
    """Parses seconds, 0 or more. Raises `ArgumentTypeError`."""
    seconds = _number(text)
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds (0 for none)")
    return seconds


def share(text: str) -> float:
    """Parses a share from 0 to 1, inclusive. Raises `ArgumentTypeError`."""
    number = _number(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1")
    return number


def positive_share(text: str) -> float:
    """Parses a share above 0 and at most 1. Raises `ArgumentTypeError`."""
    number = _number(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share above 0 and at most 1")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
