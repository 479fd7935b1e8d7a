"""How every command and verb is added to the command line: its help ends with the command's own epilog."""

from __future__ import annotations

import argparse
from typing import TypeAlias

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
